import mime from "mime-types";
export async function run() {
  return [mime.lookup("a/b.html"), mime.contentType("x.json"), mime.extension("image/png"), mime.lookup("none.zzz")];
}
