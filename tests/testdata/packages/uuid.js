import { v5 } from "uuid";

export const run = () => v5("example.com", v5.DNS);
