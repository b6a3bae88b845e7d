import debug from "debug";
export async function run() {
  const log = debug("app");
  debug.enable("app:*");
  const lines = [];
  debug.log = (...all) => lines.push(all.length > 0);
  debug("app:x")("hello %s", "x");
  return [log.enabled, debug.enabled("app:y"), lines, debug.disable()];
}
