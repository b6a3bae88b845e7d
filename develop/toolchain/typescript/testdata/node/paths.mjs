import path from "path";
import { posix } from "node:path";
import querystring from "querystring";
import url, { fileURLToPath, pathToFileURL, URL as Same } from "node:url";
import os from "os";

const paths = ["", ".", "..", "/", "//", "a", "a/", "/a", "a/b.txt", "/a/b/c.tar.gz", "./a/../b", "../a/./b//c/", "/../a", ".bashrc", "a.", "a/.b.c", "..a", "/a//b", "a/b/", "//a"];
const urls = [
  "http://user:pa%20ss@Example.com:8080/p/a/t/h?query=string&a=1&a=2#hash", "https://example.com", "/path?x=1", "//host/path", "mailto:a@b.c", "file:///etc/passwd", "http://[::1]:3000/x", "a b", "?q", "#h", "http://a.com?x", "postgres://u:p@h:5432/db?ssl=true",
  "javascript:alert(1)", "http://example.com/a b", "HTTP://EXAMPLE.com/\\x",
];

export const cases = {
  ...Object.fromEntries(["normalize", "dirname", "basename", "extname", "isAbsolute"].map((name) => [name, () => paths.map((p) => path[name](p))])),
  parse: () => paths.map((p) => path.parse(p)),
  join: () => [path.join("a", "..", "/b", "", "c/"), path.join(), path.join("", ""), path.join("..", "a"), path.join("/a", "../../b")],
  resolve: () => [path.resolve("/a/b", "../c"), path.resolve("/a", "/b", "c"), path.resolve("/")],
  relative: () => [path.relative("/a/b/c", "/a/d"), path.relative("/a", "/a"), path.relative("/", "/x/y"), path.relative("/a/bc", "/a/b")],
  basenames: () => [path.basename("/a/b.html", ".html"), path.basename("b", "b"), path.basename("x.html/", ".html"), path.basename("aaa", "a")],
  format: () => [path.format({ root: "/", dir: "/a", base: "b.c" }), path.format({ root: "/", name: "f", ext: ".t" }), path.format({ dir: "d", name: "n", ext: "e" }), path.format({})],
  constants: () => [path.sep, path.delimiter, posix === path.posix, os.EOL],
  badPath: () => path.join("a", 5),
  query: () => ["a=1&b=2&a=3", "a=%20b+c&%zz=1", "=x&y", "a=%E4%BD%A0&b=%ff", "a&&b=", "x=1;y=2", "__proto__=1"].map((q) => ({ ...querystring.parse(q) })),
  queryOptions: () => [{ ...querystring.parse("a:1;b:2", ";", ":") }, { ...querystring.parse("a=1&b=2&c=3", null, null, { maxKeys: 2 }) }],
  stringify: () => [querystring.stringify({ a: 1, b: ["x", "y"], c: true, d: null, e: undefined, f: NaN, g: "a b&ü", h: {}, i: 5n }), querystring.stringify({ a: 1, b: 2 }, ";", ":"), querystring.escape("a'b (c)*!~"), querystring.unescape("%41%zz"), querystring.stringify("x")],
  url: () => urls.map((u) => ({ ...url.parse(u) })).map(({ query, ...rest }) => ({ ...rest, query: typeof query })),
  urlQuery: () => ({ ...url.parse(urls[0], true).query }),
  urlFormat: () => [url.format({ protocol: "http", host: "a.com", pathname: "x", query: { a: 1 } }), url.format({ hostname: "h", port: 80, pathname: "/p", search: "q=1", hash: "f" }), url.format(new URL("http://u:p@a.com/x#y"), { auth: false, fragment: false }), url.format("http://a.com/x y"), url.format({ pathname: "/a?b", search: "#x" })],
  urlResolve: () => [url.resolve("/one/two/three", "four"), url.resolve("http://example.com/", "/one"), url.resolve("http://example.com/one", "http://other.com/two")],
  files: () => [fileURLToPath("file:///a/b%20c"), pathToFileURL("/a b/c#d?e%f").href, fileURLToPath(new URL("file:///x")), Same === URL],
  badFile: () => fileURLToPath("http://a"),
  badUrl: () => url.parse(5),
  hosts: () => ["http://a b/c", "https://h!x:80x/y", "ws://u%20x:p%3a@h.c/", "foo://[::1]:8080?a=1", "mailto:a b@c", "http://a.com;b/c", "http://a@b@c/", "data:x y"].map((u) => ({ ...url.parse(u) })),
  badHost: () => url.parse("https://[::1]:abc/"),
  resolvedHosts: () => [["//a.com/x/y", "/abs"], ["//a.com/x", "//b.com/?q"], ["one/two", "three"], ["a/b?c", "?d"], ["/one", "two"], ["http://a.b/c", ""]].map(([from, to]) => url.resolve(from, to)),
  badResolve: () => url.resolve(5, "a"),
  fileFormat: () => [url.format({ protocol: "file", pathname: "/p" }), url.format({ protocol: "file:" }), url.format({ protocol: "http", auth: "a:b:c", host: "h" })],
};
