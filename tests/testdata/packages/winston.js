import winston from "winston";
import { Writable } from "stream";

export async function run() {
  const lines = [];
  const stream = new Writable({ write(chunk, _encoding, done) { lines.push(String(chunk)); done(); } });
  const log = winston.createLogger({
    level: "debug",
    format: winston.format.combine(winston.format.errors(), winston.format.splat(), winston.format.json()),
    defaultMeta: { app: "a" },
    transports: [new winston.transports.Stream({ stream })],
  });
  log.info("started %d", 5);
  log.child({ request: "r1" }).warn("slow", { ms: 12 });
  log.silly("not logged");
  const done = new Promise((finished) => log.on("finish", finished));
  log.end();
  await done;
  return lines;
}
