// Runs handlers of a module without instrumentation, and prints their median times in µs as
// JSON. The host's functions are small: they give the body and take the answer. Memory and
// globals are restored before each run, and that is not measured.

import { readFileSync } from "node:fs";
import { WASI } from "node:wasi";

const given = JSON.parse(process.argv.at(-1));
const body = new TextEncoder().encode(given.body);
let memory, status;

const runner = {
  request_body(offset, at, room) {
    const rest = body.subarray(offset);
    new Uint8Array(memory.buffer).set(rest.subarray(0, room), at);
    return rest.length;
  },
  response_send(given) {
    status = given;
    return 0;
  },
};
const module = new WebAssembly.Module(readFileSync(given.module));
const wasi = new WASI({ version: "preview1" });
const imports = { ...wasi.getImportObject(), runner: {} };
for (const { module: from, name } of WebAssembly.Module.imports(module)) {
  if (from === "runner") imports.runner[name] = runner[name] ?? (() => 0);
}
const instance = new WebAssembly.Instance(module, imports);
const { exports } = instance;
memory = exports.memory;
wasi.initialize(instance);
exports.runner_warm?.();
const image = new Uint8Array(memory.buffer).slice();
const globals = Object.values(exports).filter((x) => x instanceof WebAssembly.Global);
const values = globals.map((x) => x.value);

const times = {};
for (const handler of given.handlers) {
  const all = [];
  for (const began = performance.now(); performance.now() - began < 1000 || all.length < 20; ) {
    status = 0;
    const start = process.hrtime.bigint();
    exports[handler]();
    all.push(Number(process.hrtime.bigint() - start) / 1000);
    if (Math.trunc(status / 100) !== 2) throw new Error(`${handler} answers ${status}`);
    new Uint8Array(memory.buffer).set(image);
    globals.forEach((x, i) => (x.value = values[i]));
  }
  const last = all.slice(all.length / 2).sort((a, b) => a - b); // the engine has compiled what runs often
  times[handler] = last[Math.trunc(last.length / 2)];
}
console.log(JSON.stringify(times));
