package typescript_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
)

// nodeCases are the files of testdata/node. Their cases give in a handler what they give in Node.js.
var nodeCases = []string{"assert", "buffer", "crypto", "events", "flow", "paths", "process", "stream", "util", "zlib"}

func TestModulesOfNodeAreThoseOfNode(t *testing.T) {
	for _, name := range nodeCases {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"handlers/node.mts": `import { ok } from "@runner/sdk";
import { run } from "../run.mjs";
import { cases } from "../cases.mjs";
export const all = async () => ok(await run(cases));
`}
			for file, as := range map[string]string{"run.mjs": "run.mjs", name + ".mjs": "cases.mjs"} {
				text, err := os.ReadFile(filepath.Join("testdata/node", file))
				if err != nil {
					t.Fatal(err)
				}
				files[as] = string(text)
			}
			m := toolchaintest.Module(t, files)
			a := toolchaintest.Ask(t, m, "all", abi.Request{})
			if a.Status != 200 {
				t.Fatalf("%d %s %s %v", a.Status, a.Body, a.Log, a.Err)
			}
			if _, err := exec.LookPath("node"); err != nil {
				t.Skip("not compared with Node.js, which is not installed")
			}
			script := `import { run } from "./testdata/node/run.mjs";
import { cases } from "./testdata/node/` + name + `.mjs";
console.log(JSON.stringify(await run(cases)));`
			node := exec.Command("node", "--no-warnings", "--input-type=module", "--eval", script)
			out, err := node.Output()
			if err != nil {
				t.Fatal(err)
			}
			want, have := lines(t, out), lines(t, []byte(a.Body))
			if len(want) != len(have) || len(want) < 3 {
				t.Fatalf("%d cases in Node.js, and %d in a handler", len(want), len(have))
			}
			for i := range want {
				if want[i] != have[i] {
					t.Errorf("in a handler\n%.4000s\nin Node.js\n%.4000s", have[i], want[i])
				}
			}
		})
	}
}

func lines(t *testing.T, text []byte) (all []string) {
	t.Helper()
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return all
}

// nodeFiles are an app with packages that use Node.js.
var nodeFiles = map[string]string{
	"handlers/use.mts": `import { ok, text } from "@runner/sdk";
import { fallback, read } from "files";
import { directory, file, required as located_ } from "located";
import { mapped } from "mapped";
import { buffered, checked } from "named";
export const missing = () => {
  try {
    return ok(read("x"));
  } catch (error) {
    return ok([error.code, error.message, fallback]);
  }
};
export const replaced = () => ok(mapped);
export const located = () => {
  try {
    return ok(located_());
  } catch (error) {
    return ok([directory, file, error.code, error.message]);
  }
};
export const globals = () => ok([buffered("ab"), checked, typeof globalThis.Buffer]);
`,
	"node_modules/files/package.json": `{"name": "files", "type": "module", "main": "index.js"}`,
	"node_modules/files/index.js": `import fs, { readFileSync as own } from "node:fs";
import * as all from "fs/promises";
import { Agent } from "http";
import old from "./old.cjs";
import optional from "./optional.cjs";
export class Kept extends Agent {}
export const read = (name) => own(name);
export const fallback = [typeof fs.promises.readFile, typeof all.writeFile, own === fs.readFileSync, old, optional];
`,
	"node_modules/files/old.cjs": "const { connect } = require(\"net\");\nconst net = require(\"net\");\nmodule.exports = [typeof connect, typeof net.Socket.prototype, net.then === undefined];\n",
	"node_modules/files/optional.cjs": `const load = () => require("mariadb/callback");
let sharp = "none";
try {
  sharp = require("sharp");
} catch (error) {
  sharp = error.code;
}
let failure;
try {
  load();
} catch (error) {
  failure = error.message;
}
module.exports = [sharp, failure];
`,
	"node_modules/located/package.json": `{"name": "located", "type": "module", "main": "index.js"}`,
	"node_modules/located/index.js": `import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import old from "./old.cjs";
const require = createRequire(import.meta.url);
export const directory = join(dirname(fileURLToPath(import.meta.url)), "templates");
export const file = old;
export const required = () => require("lodash");
`,
	"node_modules/located/old.cjs":      "module.exports = require(\"path\").join(__dirname, \"x\") + __filename;\n",
	"node_modules/mapped/package.json":  `{"name": "mapped", "main": "lib/index.js", "browser": {"crypto": false, "events": "./lib/events.js"}}`,
	"node_modules/mapped/lib/index.js":  "exports.mapped = [Object.keys(require(\"crypto\")), require(\"events\"), typeof require(\"node:path\").join];\n",
	"node_modules/mapped/lib/events.js": "module.exports = \"own\";\n",
	"node_modules/named/package.json":   `{"name": "named", "type": "module", "main": "index.js"}`,
	"node_modules/named/index.js": `export const buffered = (text) => Buffer.from(text).toString("hex");
export const checked = [typeof process.nextTick, typeof global.URL, typeof setImmediate];
`,
}

func TestPackagesThatUseNodeAreBuilt(t *testing.T) {
	m := toolchaintest.Module(t, nodeFiles)
	for handler, want := range map[string]string{
		"missing":  `["ERR_METHOD_NOT_IMPLEMENTED","fs.readFileSync is not available: handlers run without Node.js, and this needs its module fs",["function","function",true,["function","object",true],["MODULE_NOT_FOUND","Cannot find module 'mariadb/callback': install it in the app directory (npm install) if it runs without Node.js"]]]`,
		"located":  `["/templates","/x/index.js","MODULE_NOT_FOUND","Cannot find module 'lodash': in a handler, a function of createRequire finds none"]`,
		"replaced": `[[],"own","function"]`,
		"globals":  `["6162",["function","function","function"],"undefined"]`,
	} {
		if a := toolchaintest.Ask(t, m, handler, abi.Request{}); a.Body != want {
			t.Errorf("%s: %d %s %s", handler, a.Status, a.Body, a.Log)
		}
	}
}

// The error names the package whose native code cannot be loaded, not the one that tried to load it.
func TestPackagesWithNativeCodeAreRefusedInWords(t *testing.T) {
	for name, description := range map[string]string{
		"by a dependency": `{"name": "@a/hash", "main": "index.js", "dependencies": {"node-gyp-build": "1.0.0"}}`,
		"by binaries":     `{"name": "@a/hash", "main": "index.js", "optionalDependencies": {"@a/hash-linux-x64": "1.0.0"}}`,
		"by a build":      `{"name": "@a/hash", "main": "index.js", "gypfile": true}`,
	} {
		dir := toolchaintest.App(t, map[string]string{
			"handlers/a.ts":                            "import { hash } from \"@a/hash\";\nexport const a = () => hash;\n",
			"node_modules/@a/hash/package.json":        description,
			"node_modules/@a/hash/index.js":            "exports.hash = require(\"node-gyp-build\")(__dirname);\n",
			"node_modules/node-gyp-build/package.json": `{"name": "node-gyp-build", "main": "index.js"}`,
			"node_modules/node-gyp-build/index.js":     "const fs = require(\"fs\");\nmodule.exports = (dir) => fs.readdirSync(dir);\n",
		})
		const want = `node_modules/node-gyp-build/index.js:2:42: error: the package "@a/hash" has native code, which handlers cannot run: fs.readdirSync is not available`
		_, _, err := toolchain.Build(context.Background(), toolchain.Options{Dir: dir, Name: "n", CacheDir: toolchaintest.EngineCache(t)})
		if wrong, ok := errors.AsType[*toolchain.DiagnosticsError](err); !ok || len(wrong.List) != 1 || !strings.HasPrefix(wrong.List[0].String(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Node.js reads several members; here the rest is an error.
func TestGzipWithAnotherMemberIsMalformed(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/a.ts": `import { ok } from "@runner/sdk";
import { gunzipSync, gzipSync } from "node:zlib";
export const a = () => {
  try {
    return ok(String(gunzipSync(Buffer.concat([gzipSync("a"), gzipSync("b")]))));
  } catch (error: any) {
    return ok(error.code);
  }
};
`})
	if a := toolchaintest.Ask(t, m, "a", abi.Request{}); a.Body != `"Z_DATA_ERROR"` {
		t.Errorf("%d %s %s", a.Status, a.Body, a.Log)
	}
}

// The state is there after operations of the host, and gone in the next request.
func TestStatesOfFlowsEndWithTheRequest(t *testing.T) {
	m := toolchaintest.Module(t, map[string]string{"handlers/a.ts": `import { AsyncLocalStorage } from "node:async_hooks";
import { call, ok } from "@runner/sdk";
const store = new AsyncLocalStorage<string>();
const ask = () => call("domainToASCII", { domain: "b\u00fccher.example" });
export async function use() {
  const before = store.getStore() ?? "none";
  store.enterWith("entered");
  const seen = await store.run("inside", async () => {
    await ask();
    const [first] = await Promise.all([ask().then(() => store.getStore()), ask()]);
    await ask().catch(() => {});
    return [first, store.getStore()];
  });
  await ask();
  return ok([before, seen, store.getStore()]);
}
`})
	for range 2 {
		if a := toolchaintest.Ask(t, m, "use", abi.Request{}); a.Body != `["none",["inside","inside"],"entered"]` {
			t.Errorf("%d %s %s", a.Status, a.Body, a.Log)
		}
	}
}

// Modules of Node.js cost only who imports them.
func TestModulesOfNodeAreLeftOutOfOtherModules(t *testing.T) {
	size := func(source string) int {
		dir := toolchaintest.App(t, map[string]string{"handlers/a.ts": source})
		module, err := os.ReadFile(filepath.Join(dir, toolchaintest.Build(t, dir).File))
		if err != nil {
			t.Fatal(err)
		}
		return len(module)
	}
	const without = "export const a = (name: string) => name;\n"
	const words = "// Buffer, process, AsyncLocalStorage\nexport const a = (Buffers: string) => Buffers + \"process\";\n"
	small, large := size(without), size("import { AsyncLocalStorage } from \"node:async_hooks\";\nexport const a = () => new AsyncLocalStorage();\n")
	if other := size(words); other > small+500 {
		t.Errorf("a module that only has the names is %d bytes larger", other-small)
	}
	if large < small+2000 {
		t.Errorf("a module with AsyncLocalStorage has %d bytes, and one without %d", large, small)
	}
}
