import JSZip from "jszip";

export async function run() {
  const zip = new JSZip();
  zip.file("a.txt", "hello ".repeat(50));
  zip.folder("b").file("c.bin", Uint8Array.of(1, 2, 255));
  const read = await JSZip.loadAsync(await zip.generateAsync({ type: "uint8array", compression: "DEFLATE" }));
  return [Object.keys(read.files), (await read.file("a.txt").async("string")).length, [...(await read.file("b/c.bin").async("uint8array"))]];
}
