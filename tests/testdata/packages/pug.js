import pug from "pug";

export async function run() {
  return pug.render("ul\n  each one in all\n    li(class=one.kind)= one.text", { all: [{ kind: "a", text: "<b>" }, { kind: "c", text: "é" }] });
}
