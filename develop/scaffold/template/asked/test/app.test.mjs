// Serves the app with data of its own, and asks it as its callers do.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const app = dirname(dirname(fileURLToPath(import.meta.url)));
const runner = process.env.RUNNER_BIN ?? "runner";
const data = mkdtempSync(join(tmpdir(), "hello-test-"));
let server, url, token;

before(async () => {
  execFileSync(runner, ["build", app], { stdio: ["ignore", "ignore", "inherit"] });
  server = spawn(runner, ["serve", app, "--data", data, "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: server.stdout })) {
    url = line.replace("listening on ", "");
    break;
  }
  const args = ["api-keys", "create", "--app", app, "--data", data, "--scope", "greetings", "--name", "test", "--json"];
  token = JSON.parse(execFileSync(runner, args, { stdio: ["ignore", "pipe", "inherit"] })).token;
});

after(async () => {
  if (server) {
    server.kill();
    await new Promise((ended) => server.once("exit", ended));
  }
  rmSync(data, { recursive: true });
});

async function ask(path, body) {
  const headers = { "X-API-Key": token };
  const init = body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers };
  const answer = await fetch(url + path, init);
  return { status: answer.status, body: await answer.json() };
}

test("a name is greeted", async () => {
  assert.deepEqual(await ask("/v1/hello/world"), { status: 200, body: { name: "world", text: "hello world" } });
});

test("there is nobody to greet", async () => {
  const { status, body } = await ask("/v1/hello/nobody");
  assert.equal(status, 400);
  assert.equal(body.detail, "there is nobody to greet");
});

test("a greeting is kept", async () => {
  assert.equal((await ask("/v1/greetings", { name: "ada", text: "good morning" })).status, 201);
  assert.deepEqual((await ask("/v1/greetings?name=ada")).body, [{ name: "ada", text: "good morning" }]);
  assert.deepEqual((await ask("/v1/greetings?name=bob")).body, []);
});

test("a greeting without a text is refused", async () => {
  const { status, body } = await ask("/v1/greetings", { name: "ada" });
  assert.equal(status, 400);
  assert.equal(body.errors[0].field, "text");
});

test("without a key nothing is told", async () => {
  assert.equal((await fetch(url + "/v1/greetings")).status, 401);
});
