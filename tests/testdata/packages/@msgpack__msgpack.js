import { decode, decodeMulti, encode, ExtensionCodec } from "@msgpack/msgpack";

export async function run() {
  const value = { a: [1, -1, 2 ** 40, 1.5, "é𝄞", null, true], bytes: new Uint8Array([1, 2]), long: "x".repeat(300), at: new Date(5) };
  const bytes = encode(value);
  const back = decode(bytes);
  const codec = new ExtensionCodec();
  codec.register({ type: 0, encode: (o) => (o instanceof Set ? encode([...o]) : null), decode: (data) => new Set(decode(data)) });
  return [Array.from(bytes).join(), { ...back, bytes: Array.from(back.bytes) }, [...decode(encode(new Set([1, 2]), { extensionCodec: codec }), { extensionCodec: codec })], [...decodeMulti(new Uint8Array([1, 2, 3]))]];
}
