import { sha3_256 } from "@noble/hashes/sha3.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

export const run = () => bytesToHex(sha3_256(utf8ToBytes("abc")));
