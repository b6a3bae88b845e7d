// The extension of VS Code: it starts the language server, runs one test, and replays a failure. All of them are commands of
// the program `runner`, which the setting runner.path names.
"use strict";

const { execFile } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { promisify } = require("node:util");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { testsOf } = require("./testcalls.js");

/** The server reads handlers too: it leads from their functions to the routes. */
const documents = [
  { scheme: "file", language: "runner-schema" },
  ...["typescript", "javascript", "python", "go", "rust"].map((language) => ({
    scheme: "file",
    language,
    pattern: "**/handlers/**",
  })),
];

const testFiles = { scheme: "file", pattern: "**/*.test.{ts,mts,cts,tsx,js,mjs,cjs,jsx}" };

/** @type {LanguageClient | undefined} */
let client;

exports.activate = async function (/** @type {vscode.ExtensionContext} */ context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("runner.runTest", runTest),
    vscode.commands.registerCommand("runner.replayLastFailure", replayLastFailure),
    vscode.languages.registerCodeLensProvider(testFiles, { provideCodeLenses }),
    vscode.workspace.onDidGrantWorkspaceTrust(startServer),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("runner.path")) return startServer();
    }),
  );
  await startServer();
};

exports.deactivate = () => client?.stop();

function program() {
  return vscode.workspace.getConfiguration("runner").get("path", "runner");
}

/** Starts the language server, instead of the one that runs. */
async function startServer() {
  if (!vscode.workspace.isTrusted) return;
  await client?.stop().catch(() => {}); // it may not have started
  client = new LanguageClient(
    "runner",
    "Runner",
    { command: program(), args: ["lsp"] },
    {
      documentSelector: documents,
      synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/{*.schema,handlers/**}") },
    },
  );
  try {
    await client.start();
  } catch (/** @type {any} */ err) {
    client = undefined;
    void complain(`cannot start "${program()} lsp": ${err.message}: install the runner, or set runner.path`);
  }
}

/** Shows an error, with the way to the setting. */
async function complain(/** @type {string} */ text) {
  if ((await vscode.window.showErrorMessage(`Runner: ${text}`, "Open settings")) !== undefined) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "runner.path");
  }
}

function inform(/** @type {string} */ text) {
  void vscode.window.showInformationMessage(`Runner: ${text}`);
}

function provideCodeLenses(/** @type {vscode.TextDocument} */ document) {
  return testsOf(document.getText()).map(({ at, name }) => {
    const place = document.positionAt(at);
    return new vscode.CodeLens(new vscode.Range(place, place), {
      title: "$(play) Run test",
      command: "runner.runTest",
      arguments: [document.uri, name],
    });
  });
}

/** Runs the named test of a file; without arguments, the one around the cursor. */
async function runTest(/** @type {vscode.Uri | undefined} */ file, /** @type {string | undefined} */ name) {
  if (file === undefined || name === undefined) {
    const editor = vscode.window.activeTextEditor;
    const cursor = editor?.document.offsetAt(editor.selection.active) ?? 0;
    name = testsOf(editor?.document.getText() ?? "").findLast(({ at }) => at <= cursor)?.name;
    file = editor?.document.uri;
    if (file === undefined || name === undefined) return inform("put the cursor into a call of test(…)");
  }
  await vscode.workspace.saveAll(false);
  const app = appOf(file.fsPath);
  const filter = name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"); // it is a regular expression
  await inTerminal(["test", path.relative(app, file.fsPath).split(path.sep).join("/"), "--filter", filter], app);
}

/** Replays the newest recorded failure of the app. */
async function replayLastFailure() {
  const dir = await currentApp();
  if (dir === undefined) return inform("open an app, a folder with a *.schema file");
  try {
    const list = ["recorded", "list", "--failures", "--limit", "1", "--json"];
    const { stdout } = await promisify(execFile)(program(), list, { cwd: dir });
    const [newest] = JSON.parse(stdout);
    if (newest === undefined) return inform("no failure is recorded");
    await inTerminal(["replay", newest.id], dir);
  } catch (/** @type {any} */ err) {
    await complain((err.stderr || err.message).trim());
  }
}

/** Runs a command of the runner in a terminal, without a shell: an argument is passed as it is. */
async function inTerminal(/** @type {string[]} */ args, /** @type {string} */ cwd) {
  const task = new vscode.Task(
    { type: "process", command: args[0] },
    vscode.TaskScope.Workspace,
    `runner ${args[0]}`,
    "Runner",
    new vscode.ProcessExecution(program(), args, { cwd }),
  );
  task.presentationOptions = { clear: true, panel: vscode.TaskPanelKind.Dedicated };
  await vscode.tasks.executeTask(task);
}

/** The app of the active editor, or the only one of the workspace. */
async function currentApp() {
  const file = vscode.window.activeTextEditor?.document.uri;
  if (file?.scheme === "file" && hasSchema(appOf(file.fsPath))) return appOf(file.fsPath);
  const [schema] = await vscode.workspace.findFiles("**/*.schema", "**/node_modules/**", 1);
  return schema && path.dirname(schema.fsPath);
}

/** The directory of the app that a file belongs to: the nearest one above that has a schema. */
function appOf(/** @type {string} */ file) {
  for (let dir = path.dirname(file); dir !== path.dirname(dir); dir = path.dirname(dir)) {
    if (hasSchema(dir)) return dir;
  }
  return path.dirname(file);
}

function hasSchema(/** @type {string} */ dir) {
  return fs.readdirSync(dir).some((name) => name.endsWith(".schema"));
}
