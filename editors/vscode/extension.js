"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const SCHEME = "headrace";
// Commands of the server; engine/lsp/answers/editor_commands.py has the same names.
const EXPLAIN = "headrace.explain";
const COMPILED_SQL = "headrace.compiledSql";
const PLAN = "headrace.plan";

let client;
const texts = new Map();

function settings() {
  return vscode.workspace.getConfiguration("headrace");
}

function serverOptions(folder) {
  const target = settings().get("target");
  const formatter = settings().get("formatter");
  const args = ["lsp", ...(target ? ["--target", target] : []), ...(formatter ? ["--formatter", formatter] : [])];
  return { command: settings().get("command"), args, options: { cwd: folder.uri.fsPath } };
}

function clientOptions(folder) {
  const pattern = `${folder.uri.fsPath}/**/*.{sql,yml,yaml}`;
  return {
    documentSelector: [{ scheme: "file", pattern }],
    workspaceFolder: folder,
    // A command of the server gives a text; it is shown beside the model.
    middleware: {
      executeCommand: async (command, args, next) => {
        const text = await next(command, args);
        if (command === EXPLAIN) {
          await show(`${args[0]}.md`, text, "markdown");
        }
        return text;
      },
    },
  };
}

async function show(name, text, language) {
  const uri = vscode.Uri.parse(`${SCHEME}:${name}`);
  texts.set(uri.toString(), text || "");
  changed.fire(uri);
  const document = await vscode.workspace.openTextDocument(uri);
  await vscode.languages.setTextDocumentLanguage(document, language);
  await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preview: true, preserveFocus: true });
}

const changed = new vscode.EventEmitter();

async function ofModel(command, suffix, language) {
  const editor = vscode.window.activeTextEditor;
  if (!client || !editor) {
    return;
  }
  const uri = editor.document.uri;
  const text = await client.sendRequest("workspace/executeCommand", { command, arguments: [uri.toString()] });
  await show(`${uri.path.split("/").pop().replace(/\.sql$/, "")}${suffix}`, text, language);
}

async function start() {
  const folders = vscode.workspace.workspaceFolders || [];
  for (const folder of folders) {
    try {
      await vscode.workspace.fs.stat(vscode.Uri.joinPath(folder.uri, "project.yml"));
    } catch {
      continue;
    }
    client = new LanguageClient("headrace", "Headrace", serverOptions(folder), clientOptions(folder));
    await client.start();
    await vscode.commands.executeCommand("setContext", "headrace.active", true);
    return;
  }
}

async function activate(context) {
  context.subscriptions.push(
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
      onDidChange: changed.event,
      provideTextDocumentContent: (uri) => texts.get(uri.toString()) || "",
    }),
    vscode.commands.registerCommand("headrace.showCompiledSql", () => ofModel(COMPILED_SQL, ".compiled.sql", "sql")),
    vscode.commands.registerCommand("headrace.showPlan", () => ofModel(PLAN, ".plan.txt", "plaintext")),
    vscode.commands.registerCommand("headrace.restart", async () => {
      await client?.stop();
      client = undefined;
      await start();
    }),
  );
  await start();
}

async function deactivate() {
  await client?.stop();
}

module.exports = { activate, deactivate };
