import crypto, { createHash, createHmac, randomBytes, randomUUID, randomInt, timingSafeEqual, pbkdf2, pbkdf2Sync, hkdfSync } from "node:crypto";
import { promisify } from "util";

const hashes = ["md5", "sha1", "sha256", "sha384", "sha512", "SHA256", "sha-256"];
const texts = ["", "abc", "é€𝄞", "x".repeat(55), "x".repeat(56), "y".repeat(64), "z".repeat(1000)];

export const cases = {
  hashes: () => hashes.map((name) => texts.map((t) => createHash(name).update(t).digest("hex"))),
  hmacs: () => hashes.slice(0, 5).map((name) => ["k", "", "k".repeat(200)].map((key) => createHmac(name, key).update("message").digest("base64"))),
  updates: () => {
    const bytes = new Uint8Array([1, 2, 3]);
    const hash = createHash("sha256").update(bytes).update("ff", "hex").update(Buffer.from("x"));
    bytes[0] = 9;
    const copy = hash.copy().update("more");
    return [hash.digest("base64url"), copy.digest("latin1"), createHash("md5").digest() instanceof Buffer];
  },
  twice: () => {
    const hash = createHash("sha1");
    hash.digest();
    return hash.update("a");
  },
  random: () => [randomBytes(70000).length, randomBytes(8) instanceof Buffer, randomBytes(8).equals(randomBytes(8)), /^[0-9a-f-]{36}$/.test(randomUUID()), randomInt(5) < 5, [1, 2].includes(randomInt(1, 3)), crypto.randomFillSync(new Uint8Array(4)).length],
  randomLater: async () => [(await promisify(randomBytes)(5)).length, await new Promise((done) => randomInt(3, 4, (error, n) => done([error, n])))],
  equal: () => [timingSafeEqual(Buffer.from("a"), Buffer.from("a")), timingSafeEqual(Buffer.from("a"), new Uint8Array([98]))],
  derive: async () => [pbkdf2Sync("password", "salt", 10, 20, "sha256").toString("hex"), (await promisify(pbkdf2)("p", Buffer.from("s"), 2, 32, "sha512")).toString("base64"), Buffer.from(hkdfSync("sha256", "key", "salt", "info", 16)).toString("hex")],
  keys: () => [crypto.createSecretKey("abc").export().toString(), crypto.createSecretKey(Buffer.from("abc")).symmetricKeySize, createHmac("sha256", crypto.createSecretKey("k", "utf8")).update("a").digest("hex")],
  web: async () => [Buffer.from(await crypto.webcrypto.subtle.digest("SHA-256", new Uint8Array(2))).toString("hex"), crypto.getRandomValues(new Uint8Array(2)).length, crypto.webcrypto === globalThis.crypto],
  badUpdate: () => createHash("sha1").update(5),
  badEqual: () => timingSafeEqual(Buffer.from("a"), Buffer.from("ab")),
  badSize: () => randomBytes(-1),
  badTexts: () => timingSafeEqual("a", "a"),
  badFill: () => crypto.randomFillSync(Buffer.alloc(4), 5),
  badIterations: () => pbkdf2Sync("a", "b", 0, 8, "sha1"),
};
