import ExcelJS from "exceljs";

export async function run() {
  const book = new ExcelJS.Workbook();
  const sheet = book.addWorksheet("Items");
  sheet.columns = [{ header: "Name", key: "name", width: 20 }, { header: "Price", key: "price" }];
  sheet.addRow({ name: "Tea é", price: 2.5 });
  sheet.getCell("B3").value = { formula: "SUM(B2:B2)", result: 2.5 };
  sheet.getRow(1).font = { bold: true };
  const bytes = await book.xlsx.writeBuffer();
  const read = new ExcelJS.Workbook();
  await read.xlsx.load(bytes);
  const rows = [];
  read.getWorksheet("Items").eachRow((row) => rows.push(row.values.slice(1)));
  return [rows, read.getWorksheet("Items").getRow(1).font.bold];
}
