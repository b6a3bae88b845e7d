import { ok, timingSafeEqual } from "@runner/sdk";

// What was made while the module was built works as well.
const early = new TextEncoder().encode("früh");
const earlyURL = new URL("https://example.com/a?b=c");

const hex = (buffer) => Array.from(new Uint8Array(buffer), (b) => b.toString(16).padStart(2, "0")).join("");
const bytes = (text) => new TextEncoder().encode(text);
const caught = (does) => {
  try {
    return does();
  } catch (e) {
    return e.name;
  }
};

/** Each row is what it is about, what it is, and what it should be. */
export async function platform() {
  const rows = [];
  const row = (about, got, want) => rows.push([about, got, want]);

  row("decode early", new TextDecoder().decode(early), "früh");
  row("encode", [...bytes("aé€😀")], [97, 195, 169, 226, 130, 172, 240, 159, 152, 128]);
  row("encode nothing", bytes("").length, 0);
  row("encode half a pair", [...bytes("\ud800")], [239, 191, 189]);
  row("decode a mark", new TextDecoder().decode(Uint8Array.of(0xef, 0xbb, 0xbf, 97)), "a");
  const junk = { "61ff": "aX", c080: "XX", e282: "X", e28261: "Xa", f09f92: "X", f09f9261: "Xa", f0808080: "XXXX", eda080: "XXX", f4908080: "XXXX", c3c3a9: "Xé", "6180f09f92a9f09f": "aX💩X", efbbbfff: "X", e0a0e0a080: "Xࠀ", efbfbdf0: "XX" };
  for (const [hex, want] of Object.entries(junk)) {
    const bytes = hex.match(/../g).map((byte) => parseInt(byte, 16));
    row("decode " + hex, new TextDecoder().decode(Uint8Array.from(bytes)), want.replaceAll("X", "\ufffd"));
    const decoder = new TextDecoder();
    const pieces = bytes.map((byte) => decoder.decode(Uint8Array.of(byte), { stream: true }));
    row("decode pieces of " + hex, pieces.join("") + decoder.decode(), want.replaceAll("X", "\ufffd"));
  }
  row("decode junk, fatal", caught(() => new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.of(97, 255))), "TypeError");
  row("decode a part of a buffer", new TextDecoder().decode(new Uint8Array(bytes("abcd").buffer, 1, 2)), "bc");
  row("decode zeros", new TextDecoder().decode(Uint8Array.of(97, 0, 98)), "a\0b");
  const decoded = (label, list, options) => caught(() => new TextDecoder(label, options).decode(Uint8Array.from(list)));
  row("decode latin1", decoded("latin1", [0x41, 0xe9, 0x80, 0x9f, 0xff]), "Aé€Ÿÿ");
  row("decode utf-16", decoded("utf-16", [0xff, 0xfe, 0x41, 0, 0x3d, 0xd8, 0, 0xde]), "A😀");
  row("decode utf-16be", decoded("UTF-16BE ", [0xfe, 0xff, 0, 0x41, 0xd8, 0x3d, 0xde, 0]), "A😀");
  row("decode half a pair", decoded("utf-16le", [0x3d, 0xd8, 0x41]), "\ufffd\ufffd");
  row("decode half a pair, fatal", decoded("utf-16le", [0x3d, 0xd8], { fatal: true }), "TypeError");
  row("labels", ["utf8", "ascii", "ucs-2", "unicodefffe"].map((l) => new TextDecoder(l).encoding), ["utf-8", "windows-1252", "utf-16le", "utf-16be"]);
  row("an unknown label", decoded("koi9-r", []), "RangeError");
  for (const [label, text] of [["utf-8", "\ufeffa€😀é"], ["utf-16le", "\ufeffa€😀"]]) {
    const whole = label === "utf-8" ? bytes(text) : Uint8Array.from([...text].flatMap((c) => [...Array(c.length).keys()].flatMap((i) => [c.charCodeAt(i) & 255, c.charCodeAt(i) >> 8])));
    const decoder = new TextDecoder(label, { fatal: true });
    row("decode " + label + " in pieces", Array.from(whole, (b) => decoder.decode(Uint8Array.of(b), { stream: true })).join("") + decoder.decode(), text.slice(1));
    row("decode " + label + " again", decoder.decode(whole), text.slice(1));
  }
  const cut = new TextDecoder();
  row("decode a cut character", [cut.decode(Uint8Array.of(97, 0xe2, 0x82), { stream: true }), cut.decode(Uint8Array.of(98)).replace(/\ufffd+/, "?")], ["a", "?b"]);
  row("decode a wrong second byte", new TextDecoder().decode(Uint8Array.of(0xe0, 0x80), { stream: true }), "\ufffd\ufffd");
  row("decode the end of a cut character, fatal", caught(() => { const d = new TextDecoder("utf-8", { fatal: true }); d.decode(Uint8Array.of(0xe2), { stream: true }); return d.decode(); }), "TypeError");

  row("headers", [caught(() => new Headers({ a: "x\ny" })), caught(() => new Headers([["a", "x\0"]])), new Headers({ a: "\r\n x \t" }).get("a")], ["TypeError", "TypeError", "x"]);
  row("self", self === globalThis, true);
  row("setImmediate", await new Promise((done) => { const no = setImmediate(() => done("no")); clearImmediate(no); setImmediate(done, "yes"); }), "yes");

  const heard = [];
  const target = new EventTarget();
  const listener = { handleEvent(event) { heard.push("object " + (this === listener) + event.type); } };
  const stop = new AbortController();
  target.addEventListener("a", function (event) { heard.push("function " + (this === target && event.target === target && event.currentTarget === target)); });
  target.addEventListener("a", listener);
  target.addEventListener("a", listener);
  target.addEventListener("a", () => heard.push("once"), { once: true });
  target.addEventListener("a", () => heard.push("signal"), { signal: stop.signal });
  target.addEventListener("b", (event) => { event.preventDefault(); event.stopImmediatePropagation(); });
  target.addEventListener("b", () => heard.push("stopped"));
  target.dispatchEvent(new Event("a"));
  stop.abort();
  target.removeEventListener("a", listener);
  target.dispatchEvent(new Event("a"));
  row("events", heard, ["function true", "object truea", "once", "signal", "function true"]);
  row("a cancelled event", [target.dispatchEvent(new Event("b", { cancelable: true })), target.dispatchEvent(new CustomEvent("c", { detail: 7 })), new CustomEvent("c", { detail: 7 }).detail, heard.length], [false, true, 7, 5]);
  row("what is not an event", caught(() => target.dispatchEvent({ type: "a" })), "TypeError");
  row("a class of targets", new (class extends EventTarget {})() instanceof EventTarget, true);

  const channel = new MessageChannel();
  const sent = { list: [1] };
  channel.port2.postMessage(sent);
  sent.list.push(2);
  row("a message", await new Promise((done) => { channel.port1.onmessage = ({ data }) => done(data); }), { list: [1] });

  row("encode long", bytes("é".repeat(100000)).length, 200000);

  row("url", earlyURL.href, "https://example.com/a?b=c");
  for (const [input, base, want] of [
    ["HTTP://User:Pa%20ss@Example.COM:80/a/./b/../c?x=1&y#z", undefined, "http://User:Pa%20ss@example.com/a/c?x=1&y#z"],
    ["https://x.test", undefined, "https://x.test/"],
    ["https://x.test:8443/ö b?q=ü", undefined, "https://x.test:8443/%C3%B6%20b?q=%C3%BC"],
    ["../c?d", "https://x.test/a/b/e", "https://x.test/a/c?d"],
    ["/c", "https://x.test/a/b", "https://x.test/c"],
    ["//y.test/c", "https://x.test/a/b", "https://y.test/c"],
    ["?q", "https://x.test/a/b#f", "https://x.test/a/b?q"],
    ["#g", "https://x.test/a/b?q#f", "https://x.test/a/b?q#g"],
    ["http://[2001:db8::1]:8080/", undefined, "http://[2001:db8::1]:8080/"],
    ["mailto:a@b.test", undefined, "mailto:a@b.test"],
  ]) {
    row(`url ${input}`, caught(() => new URL(input, base).href), want);
  }
  for (const input of ["x", "http://", "http://a b/", "http://x:99999/", "//x"]) row(`url ${input}`, caught(() => new URL(input).href), "TypeError");
  row("url of other scripts", ["http://BÜCHER.example/", "https://例え。jp:444", "ws://xn--bcher-kva.x"].map((u) => new URL(u).host), ["xn--bcher-kva.example", "xn--r8jz45g.jp:444", "xn--bcher-kva.x"]);
  const headers = new Headers({ B: " 2 ", a: "1" });
  headers.append("A", "3");
  row("headers", [[...headers], headers.get("A"), headers.get("c"), headers.has("B")], [[["a", "1, 3"], ["b", "2"]], "1, 3", null, true]);
  row("a header's name", caught(() => new Headers([["a b", "c"]])), "TypeError");
  const url = new URL("https://x.test/?a=1&a=2&b=%C3%BC+x");
  row("parameters", [url.searchParams.getAll("a"), url.searchParams.get("b"), url.searchParams.get("c")], [["1", "2"], "ü x", null]);
  url.searchParams.set("a", "3 4");
  url.searchParams.append("d", "&");
  row("parameters change the url", url.search, "?a=3+4&b=%C3%BC+x&d=%26");
  row("parameters alone", String(new URLSearchParams({ a: "b c", d: "é" })), "a=b+c&d=%C3%A9");
  row("origin", [url.origin, url.host, url.protocol], ["https://x.test", "x.test", "https:"]);

  const original = { date: new Date(5), map: new Map([["a", new Set([1])]]), bytes: Uint8Array.of(1, 2), list: [1, , 3], nested: { again: null } };
  original.nested.again = original;
  const copy = structuredClone(original);
  row("clone", [copy !== original, copy.nested.again === copy, copy.date.getTime(), [...copy.map.get("a")], [...copy.bytes], copy.list.length, 1 in copy.list], [true, true, 5, [1], [1, 2], 3, false]);
  copy.bytes[0] = 9;
  row("clone shares nothing", original.bytes[0], 1);
  const moved = new ArrayBuffer(3);
  const clones = structuredClone({ moved, view: new Uint8Array(moved, 1) }, { transfer: [moved] });
  row("clone with a transfer", [moved.byteLength, clones.moved.byteLength, clones.view.buffer === clones.moved, clones.view.length], [0, 3, true, 2]);
  row("clone with what cannot be transferred", [caught(() => structuredClone(1, { transfer: [{}] })), caught(() => structuredClone(1, { transfer: [moved] }))], ["DataCloneError", "DataCloneError"]);
  row("clone of a function", caught(() => structuredClone(() => 1)), "DataCloneError");

  // FIPS 180-4 and RFC 4231, test case 2.
  row("sha-256", hex(await crypto.subtle.digest("SHA-256", bytes("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  row("sha-256 of nothing", hex(await crypto.subtle.digest("SHA-256", bytes(""))), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  row("sha-256 of a thousand", hex(await crypto.subtle.digest("SHA-256", bytes("a".repeat(1000)))), "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
  row("sha-384", hex(await crypto.subtle.digest({ name: "sha-384" }, bytes("abc"))), "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7");
  row("sha-512", hex(await crypto.subtle.digest("SHA-512", bytes("abc"))), "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
  row("sha-1", hex(await crypto.subtle.digest("SHA-1", bytes("abc"))), "a9993e364706816aba3e25717850c26c9cd0d89d");
  row("md5", await crypto.subtle.digest("MD5", bytes("abc")).catch((e) => e instanceof DOMException && e.name), "NotSupportedError");
  row("equal in constant time", [timingSafeEqual("ä", bytes("ä")), timingSafeEqual("a", "b"), timingSafeEqual("", "b")], [true, false, false]);
  const key = await crypto.subtle.importKey("raw", bytes("Jefe"), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
  const data = bytes("what do ya want for nothing?");
  const mac = await crypto.subtle.sign("HMAC", key, data);
  row("hmac", hex(mac), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  row("hmac verified", [await crypto.subtle.verify("HMAC", key, mac, data), await crypto.subtle.verify("HMAC", key, mac.slice(1), data), await crypto.subtle.verify("HMAC", key, mac, bytes("else"))], [true, false, false]);
  row("uuid", /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()), true);
  row("much randomness", new Set(crypto.getRandomValues(new Uint8Array(60000))).size, 256);
  row("too much randomness", caught(() => crypto.getRandomValues(new Uint8Array(65537))), "QuotaExceededError");
  row("now", Date.now() > Date.UTC(2024, 0), true);
  row("the way to the host is not left behind", typeof globalThis.__runner, "undefined");

  return ok(rows.filter(([, got, want]) => JSON.stringify(got) !== JSON.stringify(want)));
}
