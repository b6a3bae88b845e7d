// The same calls of crypto.subtle in a handler and in Node.js. run gives what must be the same on
// both sides (same), and keys and signatures that the other side must understand (made).

const { subtle } = globalThis.crypto;
const text = new TextEncoder().encode("the quick brown fox, ü");
const hex = (buffer) => Array.from(new Uint8Array(buffer), (b) => b.toString(16).padStart(2, "0")).join("");
const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (b) => parseInt(b, 16));
const bytes = (n, from = 0) => Uint8Array.from({ length: n }, (_, i) => (i * 7 + from) & 255);

const describe = (key) => [
  key.type, key.extractable, [...key.usages].sort(), Object.prototype.toString.call(key), key instanceof CryptoKey,
  key.algorithm.name, key.algorithm.hash?.name, key.algorithm.length, key.algorithm.namedCurve, key.algorithm.modulusLength,
  key.algorithm.publicExponent && hex(key.algorithm.publicExponent),
];
const sorted = (jwk) => Object.fromEntries(Object.entries({ ...jwk, key_ops: jwk.key_ops.sort() }).sort(([a], [b]) => (a < b ? -1 : 1)));
const shown = async (format, key) => {
  const exported = await subtle.exportKey(format, key);
  return format === "jwk" ? sorted(exported) : hex(exported);
};

const rsa = { modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) };
const pairs = [
  [{ name: "ECDSA", namedCurve: "P-256" }, { name: "ECDSA", hash: "SHA-256" }],
  [{ name: "ECDSA", namedCurve: "P-384" }, { name: "ecdsa", hash: { name: "sha-384" } }],
  [{ name: "ECDSA", namedCurve: "P-521" }, { name: "ECDSA", hash: "SHA-512" }],
  [{ name: "Ed25519" }, { name: "Ed25519" }],
  [{ name: "RSASSA-PKCS1-v1_5", hash: "SHA-256", ...rsa }, "RSASSA-PKCS1-v1_5"],
  [{ name: "RSASSA-PKCS1-v1_5", hash: "SHA-1", ...rsa }, "RSASSA-PKCS1-v1_5"],
  [{ name: "RSA-PSS", hash: "SHA-256", ...rsa }, { name: "RSA-PSS", saltLength: 32 }],
  [{ name: "RSA-PSS", hash: "SHA-512", ...rsa }, { name: "RSA-PSS", saltLength: 20 }],
  [{ name: "RSA-PSS", hash: "SHA-1", ...rsa }, { name: "RSA-PSS", saltLength: 0 }],
];
const agreements = [
  { name: "ECDH", namedCurve: "P-256" }, { name: "ECDH", namedCurve: "P-384" }, { name: "ECDH", namedCurve: "P-521" }, { name: "X25519" },
];
const secrets = [
  { name: "HMAC", hash: "SHA-1" }, { name: "HMAC", hash: "SHA-256" }, { name: "hmac", hash: { name: "sha-512" } },
  { name: "HMAC", hash: "SHA-384", length: 160 }, { name: "AES-GCM", length: 128 }, { name: "AES-GCM", length: 256 },
];
/** The other algorithms that encrypt or wrap, with a key of 16 bytes. */
const ciphers = [
  { name: "AES-CBC", iv: bytes(16, 1) }, { name: "AES-CTR", counter: bytes(16, 250), length: 64 }, { name: "AES-GCM", iv: bytes(15), tagLength: 64 }, { name: "AES-KW" },
];
const usagesOf = (algorithm) => (algorithm.name === "AES-GCM" ? ["decrypt", "encrypt"] : ["verify", "sign"]);

async function make() {
  const made = { pairs: [], secrets: [], agreements: [], sealed: [] };
  for (const algorithm of agreements) {
    const [one, other] = [await subtle.generateKey(algorithm, true, ["deriveBits", "deriveKey"]), await subtle.generateKey(algorithm, true, ["deriveBits"])];
    const shared = hex(await subtle.deriveBits({ name: algorithm.name, public: other.publicKey }, one.privateKey, null));
    const public_ = {}, private_ = {};
    for (const format of ["spki", "jwk", "raw"]) public_[format] = await shown(format, other.publicKey);
    for (const format of ["pkcs8", "jwk"]) private_[format] = await shown(format, one.privateKey);
    made.agreements.push({ algorithm, public: public_, private: private_, shared, described: [describe(one.publicKey), describe(one.privateKey)] });
  }
  for (const hash of ["SHA-1", "SHA-256", "SHA-512"]) {
    for (const label of [undefined, "6c6162656c"]) {
      const { publicKey, privateKey } = await subtle.generateKey({ name: "RSA-OAEP", hash, ...rsa }, true, ["encrypt", "decrypt", "wrapKey"]);
      const algorithm = label ? { name: "RSA-OAEP", label: unhex(label) } : { name: "RSA-OAEP" };
      made.sealed.push({
        hash, label, jwk: await shown("jwk", privateKey), sealed: hex(await subtle.encrypt(algorithm, publicKey, text)), described: [describe(publicKey), describe(privateKey)],
      });
    }
  }
  for (const [algorithm, signs] of pairs) {
    const { publicKey, privateKey } = await subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const formats = algorithm.name.startsWith("RSA") ? ["spki", "jwk"] : ["spki", "jwk", "raw"];
    const one = { algorithm, signs, public: {}, private: {}, signature: hex(await subtle.sign(signs, privateKey, text)) };
    for (const format of formats) one.public[format] = await shown(format, publicKey);
    for (const format of ["pkcs8", "jwk"]) one.private[format] = await shown(format, privateKey);
    made.pairs.push({ ...one, algorithm: { ...algorithm, publicExponent: undefined }, described: [describe(publicKey), describe(privateKey)] });
  }
  for (const algorithm of secrets) {
    const key = await subtle.generateKey(algorithm, true, usagesOf(algorithm));
    const one = { algorithm, raw: await shown("raw", key), jwk: await shown("jwk", key), described: describe(key) };
    if (algorithm.name === "AES-GCM") {
      const iv = crypto.getRandomValues(new Uint8Array(12));
      one.iv = hex(iv);
      one.sealed = hex(await subtle.encrypt({ name: "AES-GCM", iv, additionalData: text, tagLength: 96 }, key, text));
    } else {
      one.signature = hex(await subtle.sign("HMAC", key, text));
    }
    made.secrets.push(one);
  }
  return made;
}

/** What the other side has made, imported in each format and exported again. */
async function check(made) {
  const out = [];
  for (const { algorithm, public: publics, private: privates, shared } of made.agreements) {
    for (const [format, data] of Object.entries(publics)) {
      const other = await subtle.importKey(format, format === "jwk" ? data : unhex(data), algorithm, true, []);
      for (const [form, mine] of Object.entries(privates)) {
        const own = await subtle.importKey(form, form === "jwk" ? mine : unhex(mine), algorithm, true, ["deriveBits"]);
        const whole = await subtle.deriveBits({ name: algorithm.name, public: other }, own, null);
        const part = await subtle.deriveBits({ name: algorithm.name, public: other }, own, 128);
        out.push([format, form, describe(other), describe(own), hex(whole) === shared, shared.startsWith(hex(part))]);
      }
    }
  }
  for (const { hash, label, jwk, sealed } of made.sealed) {
    const algorithm = label ? { name: "RSA-OAEP", label: unhex(label) } : { name: "RSA-OAEP" };
    const key = await subtle.importKey("jwk", jwk, { name: "RSA-OAEP", hash }, true, ["decrypt"]);
    out.push([describe(key), hex(await subtle.decrypt(algorithm, key, unhex(sealed)))]);
  }
  for (const { algorithm, signs, public: publics, private: privates, signature } of made.pairs) {
    let verifier;
    for (const [format, data] of Object.entries(publics)) {
      const key = (verifier = await subtle.importKey(format, format === "jwk" ? data : unhex(data), algorithm, true, ["verify"]));
      const again = [];
      for (const other of Object.keys(publics)) again.push(JSON.stringify(await shown(other, key)) === JSON.stringify(publics[other]));
      out.push([
        format, describe(key).filter((_, i) => i !== 9), again,
        await subtle.verify(signs, key, unhex(signature), text), await subtle.verify(signs, key, unhex(signature), bytes(5)),
        await subtle.verify(signs, key, unhex(signature).slice(0, -1), text), await subtle.verify(signs, key, new Uint8Array(0), text),
      ]);
    }
    for (const [format, data] of Object.entries(privates)) {
      const key = await subtle.importKey(format, format === "jwk" ? data : unhex(data), algorithm, true, ["sign"]);
      const again = [];
      for (const other of Object.keys(privates)) again.push(JSON.stringify(await shown(other, key)) === JSON.stringify(privates[other]));
      out.push([format, describe(key).filter((_, i) => i !== 9), again, await subtle.verify(signs, verifier, await subtle.sign(signs, key, text), text)]);
    }
  }
  for (const { algorithm, raw, jwk, iv, sealed, signature } of made.secrets) {
    const usages = usagesOf(algorithm);
    for (const key of [await subtle.importKey("raw", unhex(raw), algorithm, true, usages), await subtle.importKey("jwk", jwk, algorithm, true, usages)]) {
      const one = [describe(key), (await shown("raw", key)) === raw, JSON.stringify(await shown("jwk", key)) === JSON.stringify(jwk)];
      if (sealed) one.push(hex(await subtle.decrypt({ name: "AES-GCM", iv: unhex(iv), additionalData: text, tagLength: 96 }, key, unhex(sealed))));
      else one.push(await subtle.verify("HMAC", key, unhex(signature), text));
      out.push(one);
    }
  }
  return out;
}

async function fixed() {
  const out = {};
  for (const hash of ["SHA-1", "sha-256", { name: "SHA-384" }, "SHA-512"]) out[`digest ${JSON.stringify(hash)}`] = hex(await subtle.digest(hash, text));
  const secret = await subtle.importKey("raw", bytes(20), "PBKDF2", false, ["deriveBits", "deriveKey"]);
  const shared = await subtle.importKey("raw", bytes(20), { name: "hkdf" }, false, ["deriveKey", "deriveBits"]);
  out.derivers = [describe(secret), describe(shared)];
  for (const hash of ["SHA-1", "SHA-256", "SHA-384", "SHA-512"]) {
    for (const length of [8, 160, 512, 1032]) {
      out[`pbkdf2 ${hash} ${length}`] = hex(await subtle.deriveBits({ name: "PBKDF2", hash, salt: bytes(9), iterations: 30 }, secret, length));
      out[`hkdf ${hash} ${length}`] = hex(await subtle.deriveBits({ name: "HKDF", hash, salt: bytes(9), info: bytes(3) }, shared, length));
    }
  }
  const info = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(0), info: new Uint8Array(0) };
  for (const derived of [
    { name: "AES-CBC", length: 128 }, { name: "AES-CTR", length: 192 }, { name: "AES-KW", length: 256 }, { name: "AES-GCM", length: 256 }, { name: "HMAC", hash: "SHA-256" }, { name: "HMAC", hash: "SHA-384" }, { name: "HMAC", hash: "SHA-512", length: 256 },
  ]) {
    const key = await subtle.deriveKey(info, shared, derived, true, derived.name === "HMAC" ? ["sign"] : ["wrapKey", "unwrapKey"]);
    out[`deriveKey ${JSON.stringify(derived)}`] = [describe(key), hex(await subtle.exportKey("raw", key))];
  }
  const sealing = await subtle.importKey("raw", bytes(32), "AES-GCM", false, ["encrypt", "decrypt", "wrapKey", "unwrapKey"]);
  for (const [ivBytes, tagLength] of [[12, undefined], [12, 128], [12, 120], [12, 104], [12, 96], [12, 64], [12, 32], [16, 32], [20, 112], [16, 128], [13, undefined], [60, 128]]) {
    for (const additionalData of [undefined, bytes(40)]) {
      const algorithm = { name: "AES-GCM", iv: bytes(ivBytes, 3) };
      if (tagLength) algorithm.tagLength = tagLength;
      if (additionalData) algorithm.additionalData = additionalData;
      for (const data of [new Uint8Array(0), text, bytes(1000).buffer, new DataView(bytes(100).buffer, 10, 20)]) {
        const sealed = await subtle.encrypt(algorithm, sealing, data);
        const opened = await subtle.decrypt(algorithm, sealing, sealed);
        out[`gcm ${ivBytes} ${tagLength} ${!!additionalData} ${data.byteLength}`] = [hex(sealed), hex(opened)];
      }
    }
  }
  for (const algorithm of ciphers.slice(0, 3)) {
    const key = await subtle.importKey("raw", bytes(32, 5), algorithm.name, false, ["encrypt", "decrypt"]);
    for (const data of [new Uint8Array(0), text, bytes(16), bytes(1000)]) {
      const sealed = await subtle.encrypt(algorithm, key, data);
      out[`${algorithm.name} ${data.byteLength}`] = [hex(sealed), hex(await subtle.decrypt(algorithm, key, sealed))];
    }
  }
  const counting = await subtle.importKey("raw", bytes(24), "AES-CTR", false, ["encrypt"]);
  for (const length of [1, 3, 8, 31, 32, 33, 63, 64, 65, 127, 128]) { // each begins again at 0 after its second block
    const counter = new Uint8Array(16);
    for (let bit = 1; bit < length; bit++) counter[15 - (bit >> 3)] |= 1 << (bit & 7);
    out[`counter ${length}`] = hex(await subtle.encrypt({ name: "AES-CTR", counter, length }, counting, bytes(length === 1 ? 32 : 60)));
  }
  const inner = [
    ["raw", await subtle.importKey("raw", bytes(32), "AES-CBC", true, ["encrypt"]), "AES-CBC", ["encrypt"]],
    ["jwk", await subtle.importKey("raw", bytes(64), { name: "HMAC", hash: "SHA-512" }, true, ["sign"]), { name: "HMAC", hash: "SHA-512" }, ["sign"]],
  ];
  for (const algorithm of ciphers) {
    const wrapper = await subtle.importKey("raw", bytes(16), algorithm.name, false, ["wrapKey", "unwrapKey"]);
    for (const [format, key, imported, usages] of inner) {
      if (format === "jwk" && algorithm.name === "AES-KW") continue; // it is not a multiple of 8 bytes
      const wrapped = await subtle.wrapKey(format, key, wrapper, algorithm);
      const again = await subtle.unwrapKey(format, wrapped, wrapper, algorithm, imported, true, usages);
      out[`wrap ${format} ${algorithm.name}`] = [format === "raw" && hex(wrapped), describe(again), hex(await subtle.exportKey("raw", again))];
    }
  }
  const hmac = await subtle.importKey("raw", bytes(200), { name: "HMAC", hash: "SHA-256" }, true, ["sign"]);
  out.hmac = hex(await subtle.sign("HMAC", hmac, text));
  const wrap = { name: "AES-GCM", iv: bytes(12) };
  const wrapped = await subtle.wrapKey("raw", hmac, sealing, wrap);
  const unwrapped = await subtle.unwrapKey("raw", wrapped, sealing, wrap, { name: "HMAC", hash: "SHA-256" }, true, ["sign", "verify"]);
  out.wrapped = [hex(wrapped), describe(unwrapped), hex(await subtle.sign("HMAC", unwrapped, text))];
  const jwk = await subtle.unwrapKey("jwk", await subtle.wrapKey("jwk", hmac, sealing, wrap), sealing, wrap, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  out.jwk = [describe(jwk), hex(await subtle.sign("HMAC", jwk, text))];
  return out;
}

/** The names of errors. */
async function failures(made) {
  const gcm = await subtle.importKey("raw", bytes(16), "AES-GCM", false, ["encrypt"]);
  const hmac = await subtle.importKey("raw", bytes(16), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const open = await subtle.importKey("raw", bytes(16), { name: "HMAC", hash: "SHA-256" }, true, ["sign", "verify"]);
  const hkdf = await subtle.importKey("raw", bytes(16), "HKDF", false, ["deriveBits"]);
  const [p256, , , ed, rs] = made.pairs;
  const ec = { name: "ECDSA", namedCurve: "P-256" };
  const edPublic = await subtle.importKey("spki", unhex(ed.public.spki), "Ed25519", false, []);
  const edPrivate = await subtle.importKey("jwk", ed.private.jwk, "Ed25519", false, ["sign"]);
  const ecPrivate = await subtle.importKey("jwk", p256.private.jwk, ec, true, ["sign"]);
  const iv = bytes(12);
  const cbc = () => subtle.importKey("raw", bytes(16), "AES-CBC", false, ["encrypt", "decrypt"]);
  const ctr = () => subtle.importKey("raw", bytes(16), "AES-CTR", false, ["encrypt", "decrypt"]);
  const kw = () => subtle.importKey("raw", bytes(16), "AES-KW", false, ["wrapKey", "unwrapKey"]);
  const pair = (namedCurve) => subtle.generateKey({ name: "ECDH", namedCurve }, false, ["deriveBits"]);
  const oaep = (usages) => {
    const { d, p, q, dp, dq, qi, key_ops, ...open } = made.sealed[0].jwk;
    const jwk = usages[0] === "encrypt" ? open : { d, p, q, dp, dq, qi, ...open };
    return subtle.importKey("jwk", jwk, { name: "RSA-OAEP", hash: "SHA-1" }, false, usages);
  };
  const sha256 = { name: "HMAC", hash: "SHA-256" };
  const rsa256 = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const derive = { name: "HKDF", hash: "SHA-256", salt: iv, info: iv };
  const oct = { kty: "oct", k: "AAAAAAAAAAAAAAAAAAAAAA" };
  const calls = {
    "an unknown digest": () => subtle.digest("MD5", text),
    "a digest of text": () => subtle.digest("SHA-256", "text"),
    "an unknown algorithm": () => subtle.importKey("raw", text, "ROT13", false, ["encrypt"]),
    "no algorithm": () => subtle.importKey("raw", text, undefined, false, ["encrypt"]),
    "an unknown format": () => subtle.importKey("pem", text, sha256, false, ["sign"]),
    "an unknown usage": () => subtle.importKey("raw", text, sha256, false, ["eat"]),
    "a usage of another algorithm": () => subtle.importKey("raw", text, sha256, false, ["encrypt"]),
    "no usage": () => subtle.importKey("raw", text, sha256, false, []),
    "a private key without a usage": () => subtle.importKey("jwk", ed.private.jwk, "Ed25519", false, []),
    "a public key that signs": () => subtle.importKey("spki", unhex(ed.public.spki), "Ed25519", false, ["sign"]),
    "an empty HMAC key": () => subtle.importKey("raw", new Uint8Array(0), sha256, false, ["sign"]),
    "an HMAC key as spki": () => subtle.importKey("spki", text, sha256, false, ["sign"]),
    "HMAC without a hash": () => subtle.importKey("raw", text, "HMAC", false, ["sign"]),
    "a short AES key": () => subtle.importKey("raw", bytes(15), "AES-GCM", false, ["encrypt"]),
    "an extractable HKDF key": () => subtle.importKey("raw", text, "HKDF", true, ["deriveBits"]),
    "bytes as a JWK": () => subtle.importKey("jwk", text, sha256, false, ["sign"]),
    "a JWK as bytes": () => subtle.importKey("raw", oct, sha256, false, ["sign"]),
    "a JWK of another type": () => subtle.importKey("jwk", { ...oct, kty: "EC" }, sha256, false, ["sign"]),
    "a JWK without a key": () => subtle.importKey("jwk", { kty: "oct" }, sha256, false, ["sign"]),
    "a JWK for another algorithm": () => subtle.importKey("jwk", { ...oct, alg: "HS512" }, sha256, false, ["sign"]),
    "a JWK for encryption": () => subtle.importKey("jwk", { ...oct, use: "enc" }, sha256, false, ["sign"]),
    "a JWK for another operation": () => subtle.importKey("jwk", { ...oct, key_ops: ["verify"] }, sha256, false, ["sign"]),
    "a JWK with an operation twice": () => subtle.importKey("jwk", { ...oct, key_ops: ["sign", "sign"] }, sha256, false, ["sign"]),
    "a JWK that is not extractable": () => subtle.importKey("jwk", { ...oct, ext: false }, sha256, true, ["sign"]),
    "spki that is not DER": () => subtle.importKey("spki", text, ec, false, ["verify"]),
    "pkcs8 that is not DER": () => subtle.importKey("pkcs8", text, rsa256, false, ["sign"]),
    "spki of another algorithm": () => subtle.importKey("spki", unhex(ed.public.spki), ec, false, ["verify"]),
    "spki of another curve": () => subtle.importKey("spki", unhex(p256.public.spki), { name: "ECDSA", namedCurve: "P-384" }, false, ["verify"]),
    "an unknown curve": () => subtle.importKey("spki", unhex(p256.public.spki), { name: "ECDSA", namedCurve: "P-192" }, false, ["verify"]),
    "a point that is none": () => subtle.importKey("raw", bytes(65), ec, false, ["verify"]),
    "an Ed25519 key of 31 bytes": () => subtle.importKey("raw", bytes(31), "Ed25519", false, ["verify"]),
    "a JWK of another curve": () => subtle.importKey("jwk", p256.public.jwk, { name: "ECDSA", namedCurve: "P-384" }, false, ["verify"]),
    "an RSA key as raw": () => subtle.importKey("raw", text, rsa256, false, ["verify"]),
    "a JWK of RSA without e": () => subtle.importKey("jwk", { ...rs.public.jwk, e: undefined }, rsa256, false, ["verify"]),
    "a JWK of RSA for another hash": () => subtle.importKey("jwk", { ...rs.public.jwk, alg: "RS512" }, rsa256, false, ["verify"]),
    "export what is not extractable": () => subtle.exportKey("raw", hmac),
    "export HKDF": () => subtle.exportKey("raw", hkdf),
    "export a private key as spki": () => subtle.exportKey("spki", ecPrivate),
    "export a private key as raw": () => subtle.exportKey("raw", ecPrivate),
    "export HMAC as pkcs8": () => subtle.exportKey("pkcs8", open),
    "sign with another algorithm's key": () => subtle.sign("HMAC", edPrivate, text),
    "sign without the usage": () => subtle.sign("Ed25519", edPublic, text),
    "verify without the usage": () => subtle.verify("HMAC", hmac, text, text),
    "sign with a cipher": () => subtle.sign("AES-GCM", gcm, text),
    "sign with ECDSA without a hash": () => subtle.sign("ECDSA", ecPrivate, text),
    "sign with something else": () => subtle.sign("HMAC", {}, text),
    "sign text": () => subtle.sign("HMAC", hmac, "text"),
    "encrypt with a signature": () => subtle.encrypt("HMAC", hmac, text),
    "encrypt with a short iv of CBC": async () => subtle.encrypt({ name: "AES-CBC", iv }, await cbc(), text),
    "decrypt half a block of CBC": async () => subtle.decrypt({ name: "AES-CBC", iv: bytes(16) }, await cbc(), bytes(8)),
    "decrypt a wrong padding of CBC": async () => subtle.decrypt({ name: "AES-CBC", iv: bytes(16) }, await cbc(), bytes(32)),
    "encrypt with a short counter": async () => subtle.encrypt({ name: "AES-CTR", counter: iv, length: 64 }, await ctr(), text),
    "encrypt with a counter of no bits": async () => subtle.encrypt({ name: "AES-CTR", counter: bytes(16), length: 0 }, await ctr(), text),
    "encrypt more than a counter counts": async () => subtle.encrypt({ name: "AES-CTR", counter: bytes(16), length: 1 }, await ctr(), bytes(33)),
    "encrypt with AES-KW": () => subtle.encrypt("AES-KW", gcm, text),
    "wrap without the usage": () => subtle.wrapKey("raw", open, gcm, { name: "AES-GCM", iv }),
    "wrap what is not extractable": async () => subtle.wrapKey("raw", hmac, await kw(), "AES-KW"),
    "wrap HKDF": async () => subtle.wrapKey("raw", hkdf, await kw(), "AES-KW"),
    "unwrap what was not wrapped": async () => subtle.unwrapKey("raw", bytes(24), await kw(), "AES-KW", sha256, true, ["sign"]),
    "agree with another curve": async () => subtle.deriveBits({ name: "ECDH", public: (await pair("P-384")).publicKey }, (await pair("P-256")).privateKey, 128),
    "agree with a private key": async () => subtle.deriveBits({ name: "ECDH", public: (await pair("P-256")).privateKey }, (await pair("P-256")).privateKey, 128),
    "agree on too much": async () => subtle.deriveBits({ name: "ECDH", public: (await pair("P-256")).publicKey }, (await pair("P-256")).privateKey, 264),
    "agree without another side": async () => subtle.deriveBits({ name: "ECDH" }, (await pair("P-256")).privateKey, 128),
    "a public key of ECDH with a usage": () => subtle.importKey("spki", unhex(made.agreements[0].public.spki), { name: "ECDH", namedCurve: "P-256" }, true, ["deriveBits"]),
    "encrypt too much with RSA-OAEP": async () => subtle.encrypt("RSA-OAEP", await oaep(["encrypt"]), bytes(300)),
    "decrypt what RSA-OAEP did not encrypt": async () => subtle.decrypt("RSA-OAEP", await oaep(["decrypt"]), bytes(256)),
    "encrypt without iv": () => subtle.encrypt({ name: "AES-GCM" }, gcm, text),
    "encrypt with a tag of 100 bits": () => subtle.encrypt({ name: "AES-GCM", iv, tagLength: 100 }, gcm, text),
    "decrypt without the usage": () => subtle.decrypt({ name: "AES-GCM", iv }, gcm, text),
    "decrypt what is too short": async () => subtle.decrypt({ name: "AES-GCM", iv }, await subtle.importKey("raw", bytes(16), "AES-GCM", false, ["decrypt"]), iv),
    "decrypt what was not encrypted": async () => subtle.decrypt({ name: "AES-GCM", iv }, await subtle.importKey("raw", bytes(16), "AES-GCM", false, ["decrypt"]), bytes(40)),
    "derive without a length": () => subtle.deriveBits(derive, hkdf, null),
    "derive 9 bits": () => subtle.deriveBits(derive, hkdf, 9),
    "derive too much": () => subtle.deriveBits(derive, hkdf, 8 * 255 * 32 + 8),
    "derive without info": () => subtle.deriveBits({ ...derive, info: undefined }, hkdf, 8),
    "derive a key without the usage": () => subtle.deriveKey(derive, hkdf, { name: "AES-GCM", length: 128 }, false, ["encrypt"]),
    "make an AES key of 64 bits": () => subtle.generateKey({ name: "AES-GCM", length: 64 }, false, ["encrypt"]),
    "make an AES key without a usage": () => subtle.generateKey({ name: "AES-GCM", length: 128 }, false, []),
    "make a pair that cannot sign": () => subtle.generateKey("Ed25519", false, ["verify"]),
    "make a pair that encrypts": () => subtle.generateKey("Ed25519", false, ["encrypt"]),
    "make a pair of an unknown curve": () => subtle.generateKey({ name: "ECDSA", namedCurve: "P-192" }, false, ["sign"]),
    "make an HMAC key of no length": () => subtle.generateKey({ ...sha256, length: 0 }, false, ["sign"]),
    "construct a key": async () => new CryptoKey(),
  };
  const out = {};
  for (const [what, call] of Object.entries(calls)) {
    out[what] = await call().then(
      (value) => ["no error", String(value)],
      (error) => [error.name, error instanceof DOMException || error instanceof TypeError],
    );
  }
  return out;
}

export async function run(other) {
  const made = await make();
  const described = [...made.pairs, ...made.secrets, ...made.agreements, ...made.sealed].map((one) => one.described);
  return { made, same: { fixed: await fixed(), described, failures: await failures(other ?? made), checked: other && (await check(other)) } };
}
