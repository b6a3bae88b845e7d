import { degrees, PDFDocument, rgb, StandardFonts } from "pdf-lib";

export async function run() {
  const made = await PDFDocument.create({ updateMetadata: false });
  const font = await made.embedFont(StandardFonts.Helvetica);
  const page = made.addPage([200, 100]);
  page.drawText("Invoice 42 é", { x: 10, y: 50, size: 12, font, color: rgb(1, 0, 0), rotate: degrees(5) });
  const form = made.getForm();
  form.createTextField("name").setText("Ada");
  const bytes = await made.save({ useObjectStreams: false });
  const read = await PDFDocument.load(bytes, { updateMetadata: false });
  return [bytes.length, Array.from(bytes.slice(0, 8)).join(), read.getPageCount(), read.getPage(0).getSize(), read.getForm().getTextField("name").getText(), font.widthOfTextAtSize("abc", 10)];
}
