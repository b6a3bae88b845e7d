import * as XLSX from "xlsx";

export async function run() {
  const sheet = XLSX.utils.json_to_sheet([{ name: "Ada", n: 1.5 }, { name: "Bü", n: 2 }]);
  sheet.C1 = { t: "n", f: "B2+B3" };
  const book = XLSX.utils.book_new();
  XLSX.utils.book_append_sheet(book, sheet, "People");
  const bytes = XLSX.write(book, { type: "array", bookType: "xlsx" });
  const read = XLSX.read(bytes, { type: "array" });
  return [read.SheetNames, XLSX.utils.sheet_to_json(read.Sheets.People), XLSX.utils.sheet_to_csv(sheet)];
}
