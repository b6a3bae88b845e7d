// Writes v8.json: what Node.js says to each mistake.
import { writeFileSync } from "node:fs";
import * as mistakes from "./handlers/mistakes.js";

const said = {};
for (const [name, mistake] of Object.entries(mistakes)) {
  try {
    mistake();
  } catch (error) {
    said[name] = String(error);
  }
}
writeFileSync(new URL("v8.json", import.meta.url), JSON.stringify(said, null, 1) + "\n");
