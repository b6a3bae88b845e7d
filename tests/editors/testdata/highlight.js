// Highlights texts with the engine of VS Code. Arguments: the directory of its npm packages, and the grammar. On stdin are
// the texts, as a JSON array; on stdout, for each text, its tokens: first byte, byte after the last, scopes.
const fs = require("node:fs");
const path = require("node:path");
const [packages, grammar] = process.argv.slice(2);
const load = (name) => require(path.join(packages, "node_modules", name));
const { Registry, INITIAL, parseRawGrammar } = load("vscode-textmate");
const { loadWASM, OnigScanner, OnigString } = load("vscode-oniguruma");

async function main() {
  await loadWASM(fs.readFileSync(path.join(packages, "node_modules/vscode-oniguruma/release/onig.wasm")));
  const registry = new Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new OnigScanner(patterns),
      createOnigString: (text) => new OnigString(text),
    }),
    loadGrammar: async () => parseRawGrammar(fs.readFileSync(grammar, "utf8"), grammar),
  });
  const language = await registry.loadGrammar("source.runner-schema");
  const all = JSON.parse(fs.readFileSync(0, "utf8")).map((text) => {
    const tokens = [];
    let stack = INITIAL;
    let offset = 0;
    for (const line of text.split("\n")) {
      const read = language.tokenizeLine(line, stack);
      stack = read.ruleStack;
      const bytes = (chars) => offset + Buffer.byteLength(line.slice(0, chars));
      for (const t of read.tokens) tokens.push([bytes(t.startIndex), bytes(t.endIndex), t.scopes.join(" ")]);
      offset += Buffer.byteLength(line) + 1;
    }
    return tokens;
  });
  process.stdout.write(JSON.stringify(all));
}
main();
