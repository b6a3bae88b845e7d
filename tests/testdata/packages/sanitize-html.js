import sanitize from "sanitize-html";
export async function run() {
  return [sanitize('<p onclick=x>Hi <script>alert(1)</script><a href="javascript:x">l</a><b>é</b></p>'), sanitize("<img src=x style='color:red'>", { allowedTags: ["img"], allowedAttributes: { img: ["src"] } })];
}
