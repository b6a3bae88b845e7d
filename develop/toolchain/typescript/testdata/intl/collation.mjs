// Writes collation.json: how Node.js orders texts. Run it with Node.js 20 and a complete ICU:
// node develop/toolchain/typescript/testdata/intl/collation.mjs > develop/toolchain/typescript/testdata/intl/collation.json
//
// It is a list of [options, texts, signs]. The texts are sorted, so that each pair is close. signs has "<", "=" or ">" for each text and the one before it; the first is
// compared with the last.

let seed = 20;
const random = () => (seed = (seed * 1664525 + 1013904223) >>> 0) / 2 ** 32;
const below = (n) => Math.floor(random() * n);
const pick = (all) => all[below(all.length)];

const ranges = [
  [0x20, 0x7e, 30], [0xa0, 0x24f, 30], [0x300, 0x36f, 12], [0x370, 0x3ff, 6], [0x400, 0x52f, 8], [0x5d0, 0x5ea, 4], [0x591, 0x5c7, 2],
  [0x620, 0x669, 5], [0x904, 0x97f, 4], [0x985, 0x9d7, 2], [0xb92, 0xbd7, 2], [0xcbf, 0xcd6, 1], [0xe01, 0xe4e, 5], [0xec0, 0xec4, 1], [0xf40, 0xfb3, 2],
  [0x1100, 0x11ff, 2], [0x1e00, 0x1fff, 6], [0x2000, 0x206f, 3], [0x20a0, 0x20bf, 2], [0x2100, 0x214f, 2], [0x2150, 0x218b, 2], [0x2460, 0x24ff, 2],
  [0x3041, 0x30ff, 6], [0x3400, 0x4dbf, 1], [0x4e00, 0x9fff, 6], [0xa640, 0xa69f, 1], [0xac00, 0xd7a3, 4], [0xf900, 0xfad9, 1], [0xfb00, 0xfb06, 1],
  [0xff01, 0xff9f, 3], [0x10400, 0x1044f, 1], [0x1d400, 0x1d7ff, 2], [0x1f300, 0x1f64f, 3], [0x20000, 0x2a6df, 1], [0x0, 0xd7ff, 8], [0xe000, 0x323af, 8],
];
const total = ranges.reduce((sum, [, , weight]) => sum + weight, 0);
function any() {
  for (;;) {
    let at = random() * total;
    const [from, to] = ranges.find(([, , weight]) => (at -= weight) < 0) ?? ranges[0];
    const c = String.fromCodePoint(from + below(to - from + 1));
    if (/\p{Assigned}/u.test(c)) return c;
  }
}

// Texts that differ in few places.
const stems = ["resume", "résumé", "Ångström", "Åse", "aase", "file10", "file9", "file 2", "co-op", "coop", "CO-OP", "Straße", "strasse", "й", "и\u0327\u0306", "\u0e40\u0e01", "naïve", "a1b02", "x٣", "½", "²", "(a)", "a.b", "ﬁn", "가나", "日本", "ｶﾞ", "が"];
function text() {
  const kind = below(4);
  if (kind === 0) return Array.from({ length: 1 + below(4) }, any).join("");
  if (kind === 1) return pick(stems);
  const stem = [...pick(stems)];
  const at = below(stem.length + 1);
  if (kind === 2) stem.splice(at, 0, any());
  else if (at < stem.length) stem[at] = pick([stem[at].toUpperCase(), stem[at].toLowerCase(), stem[at].normalize("NFD"), stem[at] + pick(["\u0301", "\u0308", "\u0327", " ", "-", "0", "7"])]);
  return stem.join("");
}

const options = [undefined, undefined, undefined, { sensitivity: "base" }, { sensitivity: "accent" }, { sensitivity: "case" }, { numeric: true }, { caseFirst: "upper" },
  { caseFirst: "lower" }, { ignorePunctuation: true }, { numeric: true, caseFirst: "upper", sensitivity: "variant" }, { sensitivity: "case", caseFirst: "upper" },
  { numeric: true, sensitivity: "base" }, { ignorePunctuation: true, sensitivity: "base" }];
const sign = (n) => (n < 0 ? "<" : n > 0 ? ">" : "=");
const out = options.map((given) => {
  const collator = new Intl.Collator("en", given);
  const texts = Array.from({ length: 1200 }, text).sort(collator.compare);
  return JSON.stringify([given ?? null, texts, texts.map((one, i) => sign(collator.compare(texts.at(i - 1), one))).join("")]);
});
process.stdout.write(`[\n${out.join(",\n")}\n]\n`);
