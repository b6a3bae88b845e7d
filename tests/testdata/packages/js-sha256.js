import { sha256 } from "js-sha256";

export const run = () => [sha256("abc"), sha256.hmac("key", "message")];
