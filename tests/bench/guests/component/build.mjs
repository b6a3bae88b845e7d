// Makes the components that are measured: build/rust.wasm of build/guest.wasm, and build/javascript.wasm of guest.js.
//   node build.mjs <the directory of the npm package @bytecodealliance/jco>
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const jco = process.argv[2];
const here = import.meta.dirname;
const { componentEmbed, componentNew } = await import(join(jco, "dist/api.js"));
const { componentize } = await import(join(jco, "../componentize-js/src/componentize.js"));

// nested returns a file of WIT as a package that can follow another one in a file.
function nested(file) {
  const text = readFileSync(file, "utf8").replace(/^\s*@unstable\(.*\)$/gm, "");
  return `${text.replace(/^package (.*);$/m, "package $1 {")}\n}\n`;
}

const app = nested(join(here, "../../../../sdk/wit/runner.wit"));
const wasi = join(jco, "lib/wit/builtin/0.2.12");
const engine = "0.2.10"; // what that of componentize-js knows
const http = readdirSync(wasi).map((name) => nested(join(wasi, name, "package.wit")).replaceAll("0.2.12", engine)).join("");

const core = readFileSync(join(here, "build/guest.wasm"));
const handler = "func(request: request) -> result<response, error>";
const handlers = `package measured:app;
world app {
  import runner:app/rows@1.1.0;
  use runner:app/types@1.1.0.{request, response, error};
  export hello: ${handler};
  export order: ${handler};
  export hundred: ${handler};
}
${app}`;
const embedded = await componentEmbed({ witSource: handlers, worldName: "app", binary: core, metadata: [] });
const adapter = readFileSync(join(jco, "lib/wasi_snapshot_preview1.reactor.wasm"));
writeFileSync(join(here, "build/rust.wasm"), await componentNew(embedded, [["wasi_snapshot_preview1", adapter]]));

const requests = `package measured:app;
world app {
  import runner:app/rows@1.1.0;
  export wasi:http/incoming-handler@${engine};
}
${app}${http}`;
const source = readFileSync(join(here, "guest.js"), "utf8");
const { component } = await componentize(source, { witWorld: requests, worldName: "app" });
writeFileSync(join(here, "build/javascript.wasm"), component);
