// node:process. A handler is not a process, so most values are fixed.

import events from "./events.ts";

function hrtime(before?: [number, number]): [number, number] {
  const now = performance.now();
  let seconds = Math.floor(now / 1000);
  let nanoseconds = Math.floor((now % 1000) * 1e6);
  if (before) {
    seconds -= before[0];
    nanoseconds -= before[1];
    if (nanoseconds < 0) [seconds, nanoseconds] = [seconds - 1, nanoseconds + 1e9];
  }
  return [seconds, nanoseconds];
}
hrtime.bigint = (): bigint => BigInt(Math.floor(performance.now() * 1e6));

/** stdout and stderr write lines to the server's log. */
const output = (log: (text: string) => void) => ({
  isTTY: false,
  writable: true,
  columns: 80,
  fd: 1,
  write(text: unknown, encoding?: any, done?: any): boolean {
    log(String(text).replace(/\n$/, ""));
    const back = typeof encoding === "function" ? encoding : done;
    if (typeof back === "function") queueMicrotask(() => back());
    return true;
  },
  end() {},
  on() {
    return this;
  },
  once() {
    return this;
  },
  emit: () => false,
  removeListener() {
    return this;
  },
  hasColors: () => false,
  getColorDepth: () => 1,
});

const cannot = (name: string) => (): never => {
  throw new Error(`process.${name} is not available: a handler is not a process`);
};

export const process: any = Object.assign(Object.create(events.prototype), {
  title: "runner",
  version: "v22.0.0",
  versions: { node: "22.0.0" },
  arch: "wasm32",
  platform: "linux",
  release: { name: "node" },
  env: { NODE_ENV: "production" },
  argv: [],
  argv0: "",
  execArgv: [],
  execPath: "",
  pid: 1,
  ppid: 0,
  exitCode: undefined,
  features: {},
  config: { variables: {} },
  stdout: output((text) => console.log(text)),
  stderr: output((text) => console.error(text)),
  stdin: { isTTY: false, fd: 0, on: () => process.stdin },
  nextTick(does: (...values: unknown[]) => unknown, ...values: unknown[]): void {
    if (typeof does !== "function") throw new TypeError('The "callback" argument must be of type function.');
    queueMicrotask(() => void does(...values));
  },
  hrtime,
  uptime: () => Math.max(performance.now(), 0) / 1000,
  cwd: () => "/",
  umask: () => 0o22,
  memoryUsage: Object.assign(() => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }), { rss: () => 0 }),
  cpuUsage: () => ({ user: 0, system: 0 }),
  emitWarning(warning: any, kind?: any) {
    const name = typeof kind === "string" ? kind : (kind?.type ?? "Warning");
    console.warn(warning instanceof Error ? warning : `${name}: ${warning}`);
  },
  getBuiltinModule: () => undefined,
  exit: cannot("exit"),
  abort: cannot("abort"),
  kill: cannot("kill"),
  chdir: cannot("chdir"),
  binding: cannot("binding"),
  dlopen: cannot("dlopen"),
});
Object.defineProperty(process, Symbol.toStringTag, { value: "process", configurable: true });

export default process;
