import buffer, { Buffer } from "node:buffer";
import { StringDecoder } from "string_decoder";

const text = "h€llo 𝄞 wörld\u0000é";
const encodings = ["utf8", "hex", "base64", "base64url", "latin1", "ascii", "utf16le", "ucs2", "binary", "UTF-8"];
const b = (...bytes) => Buffer.from(bytes);

export const cases = {
  from: () => [Buffer.from("añb").toString("hex"), Buffer.from([256, -1, 1.7, "3"]), Buffer.from(new Uint16Array([1, 513])), Buffer.from({ type: "Buffer", data: [1, 2] }), Buffer.from(Buffer.from("x")), Buffer.from(new String("s"))],
  fromMemory: () => {
    const memory = new Uint8Array([1, 2, 3, 4]).buffer;
    const made = Buffer.from(memory, 1, 2);
    new Uint8Array(memory)[1] = 9;
    return [made, made.length, made.byteOffset];
  },
  encodings: () => encodings.map((e) => [e, Buffer.from(text, e === "hex" || e.startsWith("base64") ? "utf8" : e).toString(e)]),
  parsed: () => ["abc", "00ff1g22", "YWJj", "YW Jj\n", "YWI=xx", "-_-_", "A", "AB", "+/=="].map((t) => ["hex", "base64", "base64url"].map((e) => Buffer.from(t, e).toString("hex"))),
  invalidUtf8: () => [b(0xff, 0x41, 0xe2, 0x82), b(0xed, 0xa0, 0x80), b(0xef, 0xbb, 0xbf, 0x41)].map((x) => x.toString()),
  toStringParts: () => [Buffer.from("hello").toString("utf8", 1, 3), Buffer.from("hello").toString(undefined, -5, 99), Buffer.from("hello").toString("hex", 3, 1)],
  json: () => JSON.stringify(Buffer.from("ab")),
  concat: () => [Buffer.concat([b(1, 2), new Uint8Array([3])]), Buffer.concat([b(1, 2), b(3)], 2), Buffer.concat([b(1)], 3), Buffer.concat([])],
  alloc: () => [Buffer.alloc(3), Buffer.alloc(5, "ab"), Buffer.alloc(4, 1), Buffer.alloc(4, "YWI=", "base64"), Buffer.allocUnsafe(2).length],
  compare: () => [Buffer.compare(b(1, 2), b(1, 3)), b(2).compare(b(1)), b(1, 2, 3).compare(b(2, 3), 0, 2, 1, 3), b(1).equals(new Uint8Array([1])), b(1).equals(b(1, 2)), [b(2), b(1)].sort(Buffer.compare)],
  search: () => {
    const x = Buffer.from("this is a buffer is");
    return [x.indexOf("is"), x.indexOf("is", 3), x.lastIndexOf("is"), x.indexOf(Buffer.from("buf")), x.indexOf(97), x.indexOf("zz"), x.includes("is", 18), x.indexOf("is", -3), x.lastIndexOf("is", 10), x.indexOf(""), x.lastIndexOf("this", -1), Buffer.from("\u039a\u0391", "utf16le").indexOf("\u0391", 0, "utf16le")];
  },
  slices: () => {
    const x = Buffer.from("abcdef");
    const y = x.slice(1, -1);
    y[0] = 0x7a;
    return [x.toString(), y.toString(), x.subarray(-2).toString(), y instanceof Buffer, x.map((n) => n + 1) instanceof Buffer, x.parent === x.buffer];
  },
  write: () => {
    const x = Buffer.alloc(8);
    return [x.write("abc", 1), x.write("€€€", 3), x.write("ff00", 0, "hex"), x.write("zz", 6, 1), x];
  },
  copy: () => {
    const x = Buffer.alloc(4);
    return [Buffer.from("abcdef").copy(x, 1, 2), x.toString("latin1"), Buffer.from("ab").copy(x, 9)];
  },
  fill: () => [Buffer.alloc(5).fill("abc"), Buffer.alloc(5).fill(0x101, 1, 3), Buffer.alloc(4).fill("é"), Buffer.alloc(4).fill(b(1, 2, 3)), Buffer.alloc(3).fill("ff", "hex"), Buffer.alloc(2).fill("")],
  numbers: () => {
    const x = Buffer.alloc(16);
    const out = [x.writeUInt8(200, 0), x.writeInt8(-2, 1), x.writeUInt16LE(0xbeef, 2), x.writeInt32BE(-5, 4), x.writeUIntBE(0x123456789a, 8, 5), x.toString("hex")];
    out.push(x.readInt8(1), x.readUint16LE(2), x.readInt32BE(4), x.readUIntBE(8, 5), x.readIntLE(4, 6), x.readUInt32LE(4));
    x.writeDoubleLE(Math.PI, 0);
    x.writeFloatBE(1.5, 8);
    out.push(x.readDoubleLE(0), x.readFloatBE(8), x.toString("hex"));
    x.writeBigInt64BE(-3n, 0);
    x.writeBigUInt64LE(2n ** 63n, 8);
    return [...out, String(x.readBigInt64BE(0)), String(x.readBigUint64LE(8)), String(x.readBigUInt64BE()), x.writeIntLE(-70000, 0, 3), x.readIntLE(0, 3)];
  },
  swap: () => [b(1, 2, 3, 4).swap16(), b(1, 2, 3, 4).swap32(), b(1, 2, 3, 4, 5, 6, 7, 8).swap64()],
  statics: () => [Buffer.isBuffer(b(1)), Buffer.isBuffer(new Uint8Array(1)), Buffer.isEncoding("UTF8"), Buffer.isEncoding("utf-7"), Buffer.byteLength("€"), Buffer.byteLength("abc", "base64"), Buffer.byteLength("00ff", "hex"), Buffer.of(1, 2), Buffer.name, Buffer.poolSize],
  old: () => [new Buffer("ab"), Buffer(2).length, new Buffer([1])],
  typed: () => [b(1, 2) instanceof Uint8Array, Object.prototype.toString.call(b(1)), Array.from(b(3, 4)), [...b(5).entries()], b(1, 2).constructor === Buffer, b(3, 1).reverse()],
  transcode: () => [buffer.transcode(Buffer.from("€a"), "utf8", "latin1"), buffer.transcode(Buffer.from("é"), "utf8", "utf16le"), buffer.isUtf8(b(0xff)), buffer.isAscii(b(0x41))],
  decoder: () => ["utf8", "utf16le", "base64", "hex", "latin1"].map((e) => {
    const decoder = new StringDecoder(e);
    const bytes = Buffer.from("a€𝄞é", e === "utf16le" ? e : "utf8");
    const step = e === "utf16le" ? 2 : 1;
    const parts = Array.from({ length: bytes.length / step }, (_, i) => decoder.write(bytes.subarray(i * step, (i + 1) * step)));
    return [decoder.encoding, ...parts, decoder.end()];
  }),
  decoderBroken: () => {
    const decoder = new StringDecoder();
    return [decoder.write(b(0xe2, 0x82)), decoder.write(b(0x41)), decoder.write(b(0xf0, 0x9d)), decoder.end(), decoder.end(b(0xe2))];
  },
  badFrom: () => Buffer.from(5),
  badFromNull: () => Buffer.from(null),
  badSizeType: () => Buffer.alloc("5"),
  badEncoding: () => Buffer.from("a", "utf-7"),
  badRead: () => b(1).readInt32LE(0),
  badOffset: () => Buffer.alloc(8).readInt32LE(6),
  badOffsetType: () => Buffer.alloc(8).readInt32LE("1"),
  badFraction: () => Buffer.alloc(8).readInt8(0.5),
  badValue: () => Buffer.alloc(8).writeUInt8(300, 0),
  badValue32: () => Buffer.alloc(8).writeInt32LE(2 ** 40, 0),
  badValue48: () => Buffer.alloc(8).writeUIntLE(2 ** 50, 0, 6),
  badWidth: () => Buffer.alloc(8).readUIntLE(0, 7),
  badCompare: () => b(1).equals("a"),
  badConcat: () => Buffer.concat(["a"]),
  badIndexOf: () => b(1).indexOf({}),
  badSwap: () => b(1).swap16(),
  badOffsets: () => [NaN, 1.5, {}, null, "2", -1].map((offset) => { try { return Buffer.alloc(4).write("a", offset, 1, "utf8"); } catch (error) { return error.code; } }),
  badNumbersOf: () => [() => b(1, 2).compare(b(1), NaN), () => Buffer.concat([b(1)], 1.5), () => Buffer.concat([b(1), 5]), () => b(1).toString(null), () => b(1, 2).fill("a", 0.5), () => b(1, 2).fill(b(1), "hex"), () => Buffer.alloc(8).writeBigInt64LE("1")].map((does) => { try { return does(); } catch (error) { return [error.name, error.code]; } }),
  filled: () => [Buffer.alloc(3).fill("a", 5), Buffer.alloc(5, b(1, 2), "utf16le"), Buffer.alloc(3).fill("")],
  lengthsOfBrokenText: () => [["zz", "hex"], ["abc", "hex"], ["a\nb=", "base64"], ["ab==", "base64url"], ["=", "base64"]].map(([t, encoding]) => Buffer.byteLength(t, encoding)),
  wideSearch: () => [b(101, 255, 175, 38).includes("\uff65", 1, "utf16le"), b(0, 97, 0, 97).indexOf("a", 0, "utf16le"), b(1).indexOf("", 5), Buffer.alloc(0).lastIndexOf("", -1)],
  infinite: () => [b(1, 2).copy(b(0, 0), -Infinity, Infinity), b(1, 2, 3).copy(Buffer.alloc(3), 1, 0, 2)],
};
