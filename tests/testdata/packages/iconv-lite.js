import iconv from "iconv-lite";

export async function run() {
  const text = "Grüße, Ελλάδα, привет, 日本語";
  const names = ["utf8", "utf16le", "utf-16be", "win1252", "iso-8859-7", "win1251", "koi8-r", "shift_jis", "euc-jp", "gb18030", "big5", "utf7"];
  return [names.map((n) => [n, iconv.encode(text, n).toString("hex"), iconv.decode(iconv.encode(text, n), n)]), iconv.encodingExists("x"), iconv.decode(Buffer.from([0xef, 0xbb, 0xbf, 0x61]), "utf8")];
}
