import AdmZip from "adm-zip";

export async function run() {
  const zip = new AdmZip();
  zip.addFile("a.txt", Buffer.from("é€ ".repeat(200)), "a comment");
  zip.addFile("d/b.bin", Buffer.from([0, 1, 2]));
  const read = new AdmZip(zip.toBuffer());
  return [read.getEntries().map((entry) => [entry.entryName, entry.comment, entry.header.size, entry.header.crc]), read.readAsText("a.txt").length, [...read.readFile("d/b.bin")]];
}
