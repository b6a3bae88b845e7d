import { base32 } from "multiformats/bases/base32";
import { base58btc } from "multiformats/bases/base58";
import { CID } from "multiformats/cid";
import * as json from "multiformats/codecs/json";
import { sha256 } from "multiformats/hashes/sha2";

export async function run() {
  const bytes = json.encode({ hello: "world" });
  const cid = CID.create(1, json.code, await sha256.digest(bytes));
  return [cid.toString(), cid.toString(base58btc), CID.parse(cid.toString()).equals(cid), base32.decode("bmfrgg").join(), json.decode(bytes)];
}
