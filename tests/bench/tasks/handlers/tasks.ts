import { html, ok } from "@runner/sdk";
import { group, logs, markdown, sha, table } from "./lib/work.ts";

export const tsLogs = () => ok(logs());
export const tsGroup = () => ok(group());
export const tsTable = () => html(table());
export const tsMarkdown = () => html(markdown());
export const tsSha = () => ok(sha());
