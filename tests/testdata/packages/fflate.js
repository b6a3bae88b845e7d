import { gunzipSync, gzipSync, strFromU8, strToU8 } from "fflate";

export const run = () => strFromU8(gunzipSync(gzipSync(strToU8("hello ".repeat(9)), { mtime: 0 })));
