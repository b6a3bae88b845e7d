// Writes node.json: the functions among the globals of Node.js, with their names and lengths.
import { writeFileSync } from "node:fs";
import { list } from "./walk.js";

const lines = Object.entries(list()).map(([path, of]) => `${JSON.stringify(path)}: ${JSON.stringify(of)}`);
writeFileSync(new URL("node.json", import.meta.url), `{\n${lines.join(",\n")}\n}\n`);
