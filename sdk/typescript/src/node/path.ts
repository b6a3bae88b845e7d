// node:path, for POSIX. The current directory is always "/".

import { needString, wrongType } from "./errors.ts";

/** Resolves "." and "..", which stay at the beginning of a relative path. */
function normalized(path: string, absolute: boolean): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.length > 0 && parts.at(-1) !== "..") parts.pop();
    else if (!absolute) parts.push(part);
  }
  return parts.join("/");
}

/** The path without slashes at its end. */
const trimmed = (path: string): string => path.replace(/\/+$/, "");

const path: any = {
  sep: "/",
  delimiter: ":",
  resolve(...given: string[]): string {
    let resolved = "";
    for (const one of given.toReversed()) {
      needString("path", one);
      if (one === "") continue;
      resolved = resolved === "" ? one : `${one}/${resolved}`;
      if (one[0] === "/") break;
    }
    return `/${normalized(resolved, true)}`;
  },
  normalize(given: string): string {
    needString("path", given);
    if (given === "") return ".";
    const absolute = given[0] === "/";
    let made = normalized(given, absolute);
    if (made === "") return absolute ? "/" : given.endsWith("/") ? "./" : ".";
    if (given.endsWith("/")) made += "/";
    return absolute ? `/${made}` : made;
  },
  isAbsolute(given: string): boolean {
    needString("path", given);
    return given[0] === "/";
  },
  join(...given: string[]): string {
    for (const one of given) needString("path", one);
    const joined = given.filter((one) => one !== "").join("/");
    return joined === "" ? "." : path.normalize(joined);
  },
  relative(from: string, to: string): string {
    needString("from", from);
    needString("to", to);
    const a = path.resolve(from).split("/").filter(Boolean);
    const b = path.resolve(to).split("/").filter(Boolean);
    let same = 0;
    while (same < a.length && same < b.length && a[same] === b[same]) same++;
    return [...a.slice(same).map(() => ".."), ...b.slice(same)].join("/");
  },
  toNamespacedPath: (given: unknown) => given,
  dirname(given: string): string {
    needString("path", given);
    if (given === "") return ".";
    const clean = trimmed(given);
    const at = clean.lastIndexOf("/");
    if (at < 0) return given[0] === "/" ? "/" : ".";
    if (at === 0) return "/";
    return at === 1 && given[0] === "/" && given[1] === "/" ? "//" : clean.slice(0, at);
  },
  basename(given: string, suffix?: string): string {
    needString("path", given);
    if (suffix !== undefined) needString("suffix", suffix);
    const clean = trimmed(given);
    const name = clean.slice(clean.lastIndexOf("/") + 1);
    if (suffix === given) return "";
    return suffix && name !== suffix && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
  },
  extname(given: string): string {
    const name = path.basename(given);
    const at = name.lastIndexOf(".");
    return at <= 0 || name === ".." ? "" : name.slice(at);
  },
  format(parts: any): string {
    if (typeof parts !== "object" || parts === null) throw wrongType("pathObject", "of type object", parts);
    const dir = parts.dir || parts.root;
    const base = parts.base || `${parts.name || ""}${parts.ext ? `${parts.ext[0] === "." ? "" : "."}${parts.ext}` : ""}`;
    return !dir ? base : dir === parts.root ? `${dir}${base}` : `${dir}/${base}`;
  },
  parse(given: string) {
    needString("path", given);
    const root = given[0] === "/" ? "/" : "";
    const clean = trimmed(given);
    const base = path.basename(given);
    const ext = path.extname(given);
    const at = clean.lastIndexOf("/");
    const dir = at > 0 ? clean.slice(0, at) : root;
    return { root, dir, base, ext, name: ext ? base.slice(0, -ext.length) : base };
  },
  matchesGlob(): never {
    throw new Error("path.matchesGlob is not available in a handler");
  },
};
path.posix = path;
path.win32 = path;

export default path;
