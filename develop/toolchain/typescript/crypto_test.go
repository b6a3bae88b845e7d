package typescript_test

import (
	"strings"
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
)

// cryptoFile has the handlers of the tests below. Each claim is a condition that must hold. What the algorithms
// compute is tested in hostabi/webcrypto, and compared with Node.js in tests/languages.
const cryptoFile = `import { ok } from "@runner/sdk";

const { subtle } = crypto;
const equal = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
const fails = async (does: () => unknown): Promise<string> => {
  try {
    await does();
  } catch (error: any) {
    return error instanceof DOMException || error instanceof TypeError ? error.name : "another error";
  }
  return "";
};
const any = (value: unknown): any => value;
const bytes = (n: number) => Uint8Array.from({ length: n }, (_, i) => i);
const hex = (b: ArrayBuffer) => Array.from(new Uint8Array(b), (x) => x.toString(16).padStart(2, "0")).join("");
const cbc = { name: "AES-CBC", iv: bytes(16) } as const;
const aes = (name: any, usages: any[], extractable = false) => subtle.importKey("raw", bytes(16), name, extractable, usages);

export async function shape() {
  const own = Object.getOwnPropertyDescriptor(globalThis, "crypto")!;
  const key = await aes("AES-CBC", ["decrypt", "encrypt", "decrypt"], true);
  const { algorithm, usages } = key;
  usages.push("sign");
  const copy = structuredClone({ key }).key;
  const pair = await subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, false, ["deriveBits"]);
  const spki = await subtle.exportKey("spki", pair.publicKey);
  const [held, given] = await Promise.all([false, true].map((extractable) => subtle.importKey("spki", spki, { name: "ECDH", namedCurve: "P-256" }, extractable, [])));
  const shadowed = Object.defineProperty(await aes("AES-CBC", ["encrypt"]), "extractable", { value: true });
  return ok({
    shadowed: (await fails(() => subtle.exportKey("raw", shadowed))) === "InvalidAccessError",
    instances: crypto instanceof Crypto && subtle instanceof SubtleCrypto && crypto.subtle === subtle && own.set === undefined,
    tags: equal([crypto, subtle, key].map(String), ["[object Crypto]", "[object SubtleCrypto]", "[object CryptoKey]"]),
    constructors: equal(await Promise.all([Crypto, SubtleCrypto, CryptoKey].map((made) => fails(() => new (any(made))()))), Array(3).fill("TypeError")),
    brands: equal(await Promise.all([
      () => any(Crypto.prototype).subtle, () => Crypto.prototype.randomUUID.call({} as any), () => SubtleCrypto.prototype.digest.call({} as any, "SHA-1", bytes(1)), () => any(CryptoKey.prototype).type,
    ].map(fails)), Array(4).fill("TypeError")),
    cached: key.algorithm === algorithm && key.usages === usages,
    usages: equal(usages, ["encrypt", "decrypt", "sign"]) && (await fails(() => subtle.sign(any("HMAC"), key, bytes(1)))) === "InvalidAccessError",
    extractable: key.extractable && pair.publicKey.extractable && !pair.privateKey.extractable,
    // Section 14.3.9: importKey takes extractable as it is given, for public keys too.
    imported: !held.extractable && given.extractable && (await fails(() => subtle.exportKey("jwk", held))) === "InvalidAccessError" && (await subtle.exportKey("jwk", given)).ext === true,
    cloned: copy instanceof CryptoKey && copy !== key && hex(await subtle.exportKey("raw", copy)) === hex(bytes(16).buffer),
    lengths: equal(["digest", "verify", "deriveBits", "unwrapKey"].map((name) => any(subtle)[name].length), [2, 4, 2, 7]),
  });
}

export async function random() {
  const kinds = [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array];
  class Mine extends Uint8Array {}
  const mine = new Mine(64);
  const refused = [new Float32Array(1), new Float64Array(1), new Float64Array(9000), new DataView(new ArrayBuffer(1))].map((view) => fails(() => crypto.getRandomValues(view)));
  return ok({
    kinds: kinds.every((kind) => { const made = new kind(32); return crypto.getRandomValues(any(made)) === made && any(made).some((n: any) => n != 0); }),
    subclass: crypto.getRandomValues(mine) === mine && mine.some((n) => n !== 0),
    part: (() => { const all = new Uint8Array(64); crypto.getRandomValues(all.subarray(16, 48)); return all.slice(0, 16).every((n) => n === 0) && all.slice(48).every((n) => n === 0) && all.some((n) => n !== 0); })(),
    refused: equal(await Promise.all(refused), Array(4).fill("TypeMismatchError")),
    notViews: equal(await Promise.all([null, {}, new ArrayBuffer(1)].map((value) => fails(() => crypto.getRandomValues(any(value))))), Array(3).fill("TypeError")),
    most: crypto.getRandomValues(new Uint8Array(65536)).length === 65536 && (await fails(() => crypto.getRandomValues(new Uint16Array(32769)))) === "QuotaExceededError",
  });
}

// What a handler changes during and after a call (section 14.3: the algorithm is normalized first, then the bytes are copied).
export async function copies() {
  const key = await aes("AES-CBC", ["encrypt"]);
  const want = hex(await subtle.encrypt(cbc, key, bytes(5)));
  const during = new Uint8Array(5);
  const after = bytes(5);
  const moved = bytes(5);
  const one = subtle.encrypt({ ...cbc, get name() { during.set(bytes(5)); return "AES-CBC" as const; } }, key, during);
  const two = subtle.encrypt(cbc, key, after);
  after.fill(9);
  const three = subtle.encrypt({ ...cbc, get name() { moved.buffer.transfer(); return "AES-CBC" as const; } }, key, moved);
  const order: string[] = [];
  const noted = (from: any) => new Proxy(from, { get: (of, name: string) => (order.push(name), of[name]) });
  await fails(() => subtle.generateKey(noted({ name: "RSA-PSS", hash: "MD5", modulusLength: 2048, publicExponent: bytes(1) }), true, ["sign"]));
  return ok({
    during: hex(await one) === want,
    after: hex(await two) === want,
    moved: hex(await three) === hex(await subtle.encrypt(cbc, key, bytes(0))),
    view: hex(await subtle.encrypt(cbc, key, new DataView(bytes(20).buffer, 0, 5))) === want,
    order: equal(order, ["name", "modulusLength", "publicExponent", "hash"]),
  });
}

export async function refusals() {
  const key = await aes("AES-CBC", ["encrypt"]);
  const hkdf = await subtle.importKey("raw", bytes(0), "HKDF", false, ["deriveBits", "deriveKey"]);
  const derive = { name: "HKDF", hash: "SHA-256", salt: bytes(0), info: bytes(0) } as const;
  const ecdh = await subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, false, ["deriveKey"]);
  const rows: [string, string, () => unknown][] = [
    ["no arguments", "TypeError", () => any(subtle).importKey("raw", bytes(16), "AES-CBC", false)],
    ["undefined as an algorithm", "NotSupportedError", () => subtle.digest(any(undefined), bytes(1))],
    ["an object without a name", "TypeError", () => subtle.digest(any({}), bytes(1))],
    ["another letter that becomes S", "NotSupportedError", () => subtle.digest(any("\u017fHA-1"), bytes(1))],
    ["text as data", "TypeError", () => subtle.digest("SHA-1", any("text"))],
    ["text as usages", "TypeError", () => subtle.importKey("raw", bytes(16), "AES-CBC", false, any("sign"))],
    ["a JWK as raw", "TypeError", () => subtle.importKey("raw", any({ kty: "oct" }), "AES-CBC", false, ["encrypt"])],
    ["bytes as a JWK", "TypeError", () => subtle.importKey("jwk", any(bytes(16)), "AES-CBC", false, ["encrypt"])],
    ["a JWK of nothing", "DataError", () => subtle.importKey("jwk", any(null), "AES-CBC", false, ["encrypt"])],
    ["a key with more than two primes", "NotSupportedError", () => subtle.importKey("jwk", any({ kty: "RSA", oth: [] }), { name: "RSA-PSS", hash: "SHA-1" }, false, ["verify"])],
    ["usages before the length", "SyntaxError", () => subtle.generateKey({ name: "AES-CBC", length: any(100) }, false, ["sign"])],
    ["the length before no usages", "OperationError", () => subtle.generateKey({ name: "AES-CBC", length: any(100) }, false, [])],
    ["usages before the curve", "SyntaxError", () => subtle.generateKey({ name: "ECDSA", namedCurve: any("P-1") }, false, ["encrypt"])],
    ["a length beyond the type", "TypeError", () => subtle.generateKey({ name: "AES-CBC", length: any(128 + 2 ** 32) }, false, ["encrypt"])],
    ["a length below it", "TypeError", () => subtle.deriveBits(derive, hkdf, -8)],
    ["no length of HKDF", "OperationError", () => subtle.deriveBits(derive, hkdf)],
    ["the algorithm before the usage", "InvalidAccessError", () => subtle.encrypt({ name: "AES-CTR", counter: bytes(16), length: 1 }, key, bytes(90))],
    ["AES-KW to encrypt", "NotSupportedError", () => subtle.encrypt(any("AES-KW"), key, bytes(16))],
    ["a wrapped key without the usage", "InvalidAccessError", () => subtle.unwrapKey("raw", bytes(16), key, cbc, "AES-CBC", false, ["encrypt"])],
    ["HKDF is not exported", "NotSupportedError", () => subtle.exportKey("raw", hkdf)],
    ["ECDH with another object", "TypeError", () => subtle.deriveBits({ name: "ECDH", public: any({}) }, ecdh.privateKey, 8)],
    ["ECDH with a private key", "InvalidAccessError", () => subtle.deriveKey({ name: "ECDH", public: ecdh.privateKey }, ecdh.privateKey, { name: "AES-CBC", length: 128 }, false, ["encrypt"])],
    ["HKDF from HKDF", "OperationError", () => subtle.deriveKey(derive, hkdf, "HKDF", false, ["deriveBits"])],
    ["HMAC of no bits", "TypeError", () => subtle.deriveKey(derive, hkdf, { name: "HMAC", hash: "SHA-1", length: 0 }, false, ["sign"])],
  ];
  const claims: Record<string, boolean | string> = {};
  for (const [what, want, does] of rows) {
    const got = await fails(does);
    claims[what] = got === want || got;
  }
  return ok(claims);
}

export async function chains() {
  const [mine, theirs] = [await subtle.generateKey("X25519", false, ["deriveKey"]), await subtle.generateKey("X25519", false, ["deriveKey"])];
  const seal = async (own: CryptoKeyPair, other: CryptoKeyPair) => {
    const shared = await subtle.deriveKey({ name: "X25519", public: other.publicKey }, own.privateKey, "HKDF", false, ["deriveKey"]);
    return subtle.deriveKey({ name: "HKDF", hash: "SHA-256", salt: bytes(8), info: bytes(2) }, shared, { name: "AES-KW", length: 256 }, false, ["wrapKey", "unwrapKey"]);
  };
  const secret = await subtle.generateKey({ name: "AES-GCM", length: 256 }, true, ["encrypt", "decrypt"]);
  const wrapped = await subtle.wrapKey("raw", secret, await seal(mine, theirs), "AES-KW");
  const again = await subtle.unwrapKey("raw", wrapped, await seal(theirs, mine), "AES-KW", "AES-GCM", true, ["decrypt"]);
  const hkdf = await subtle.importKey("raw", bytes(0), "HKDF", false, ["deriveBits"]);
  return ok({
    wrapped: hex(await subtle.exportKey("raw", again)) === hex(await subtle.exportKey("raw", secret)) && wrapped.byteLength === 40,
    nothing: (await subtle.deriveBits({ name: "HKDF", hash: "SHA-1", salt: bytes(0), info: bytes(0) }, hkdf, 0)).byteLength === 0,
  });
}
`

func TestCryptoIsAsTheStandardHasIt(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/crypto.ts": cryptoFile})
	for handler, least := range map[string]int{"shape": 10, "random": 6, "copies": 5, "refusals": 24, "chains": 2} {
		t.Run(handler, func(t *testing.T) { claimsHold(t, toolchaintest.Ask(t, m, handler, abi.Request{}), least) })
	}
}

// crypto.subtle costs only modules that name it; randomness is in each.
func TestSubtleIsInModulesThatNameIt(t *testing.T) {
	for source, want := range map[string]string{
		"crypto.randomUUID()":              "undefined undefined",
		"crypto.subtle":                    "object function",
		"const { subtle: s } = crypto; s":  "object function",
		"({} as any) instanceof CryptoKey": "object function",
	} {
		const module = "import { ok } from \"@runner/sdk\";\nexport function a() {\n  %;\n  const at = globalThis as any;\n" +
			"  return ok([typeof at.crypto[[\"sub\", \"tle\"].join(\"\")], typeof at[[\"Crypto\", \"Key\"].join(\"\")]].join(\" \"));\n}\n"
		m := toolchaintest.Module(t, map[string]string{"handlers/a.ts": strings.Replace(module, "%", source, 1)})
		got := toolchaintest.Ask(t, m, "a", abi.Request{})
		if got.Body != `"`+want+`"` {
			t.Errorf("%s: there are %s, want %s\n%s", source, got.Body, want, got.Log)
		}
	}
}
