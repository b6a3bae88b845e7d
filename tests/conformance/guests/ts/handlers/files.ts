import { file, insert, ok, sign, type RouteRequest } from "@runner/sdk";

export async function files(req: RouteRequest) {
  const form = req.form();
  const first = await insert("Document", { title: form.get("title")!, scan: req.file("scan")! });
  const made = await file("a note ü", { name: "note.md", type: "text/markdown" });
  const second = await insert("Document", { title: "note", scan: made });
  const { name, type, size } = first.scan;
  return ok({ text: await first.scan.text(), name, type, size, note: second.scan.size, other: form.file("other") !== undefined });
}

export function sent(req: RouteRequest) {
  return file(req.file()!, { status: 201, disposition: "attachment", name: "copy.txt", cache: "private" }).withHeader("x-sent", "yes");
}

export async function linked(req: RouteRequest) {
  const { scan } = await insert("Document", { title: "linked", scan: req.file()! });
  const link = await sign(scan, { expires: "10m", disposition: "attachment", name: "copy.txt" });
  return ok({ link: link.startsWith("/_files/") });
}
