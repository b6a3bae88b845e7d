import pino from "pino";

// The form for browsers, which a handler has, writes with functions, and that of Node.js to a stream.
export async function run() {
  const lines = [];
  const write = (line) => {
    const { level, msg, a, user, err } = line;
    lines.push([level, msg, a, user, err?.type, err?.message]);
  };
  const log = pino(
    { level: "debug", base: null, browser: { asObject: true, serialize: true, write }, serializers: { user: (u) => u.id } },
    { write: (text) => write(JSON.parse(text)) },
  );
  log.info("started %d", 5);
  log.warn({ a: 1, user: { id: 7, secret: 1 } }, "with fields");
  log.trace("not logged");
  return [lines, log.level, log.isLevelEnabled?.("trace") ?? false];
}
