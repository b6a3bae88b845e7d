import { TarArchive, ZipArchive } from "archiver";
import { buffer } from "node:stream/consumers";
import { gunzipSync, inflateRawSync } from "node:zlib";

const date = new Date(0);

async function packed(archive) {
  archive.append("hello ".repeat(100), { name: "a.txt", date });
  archive.append(Buffer.from("é"), { name: "d/b.txt", date });
  const bytes = buffer(archive);
  await archive.finalize();
  return bytes;
}

export async function run() {
  const zip = await packed(new ZipArchive({ zlib: { level: 9 } }));
  const tar = await packed(new TarArchive({ gzip: true }));
  // The central directory has the sizes.
  const at = zip.indexOf("PK\x01\x02", 0, "latin1");
  const first = 30 + zip.readUInt16LE(26) + zip.readUInt16LE(28);
  return [
    zip.readUInt32LE(at + 24), zip.readUInt32LE(at + 16), String(inflateRawSync(zip.subarray(first, first + zip.readUInt32LE(at + 20)))), zip.includes("d/b.txt"),
    gunzipSync(tar).toString("latin1", 0, 5), gunzipSync(tar).length,
  ];
}
