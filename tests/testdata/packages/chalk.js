import { Chalk } from "chalk";
export async function run() {
  return [new Chalk({ level: 0 }).red("x"), new Chalk({ level: 1 }).bold.green("y"), new Chalk({ level: 3 }).hex("#ff0000")("z")];
}
