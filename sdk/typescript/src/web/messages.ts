// MessageEvent, MessagePort and MessageChannel (HTML, 9.1 and 9.4). This script is optional: see develop/toolchain/typescript/parts.go.

import { expose } from "./define.ts";
import { dictionary, isObject, takes } from "./idl.ts";
import { runner } from "../host.ts";

interface MessageInit {
  data?: unknown;
  origin?: string;
  lastEventId?: string;
  source?: MessagePort | null;
  ports?: Iterable<MessagePort>;
}
type Handler = ((event: any) => unknown) | null;

const portsOf = (given: Iterable<MessagePort> | undefined): readonly MessagePort[] => {
  const all = given === undefined ? [] : [...given];
  for (const port of all) if (!(port instanceof MessagePort)) throw new TypeError("MessageEvent: each member of ports must be a MessagePort");
  return Object.freeze(all);
};
const sourceOf = (source: unknown): MessagePort | null => {
  if (source !== undefined && source !== null && !(source instanceof MessagePort)) throw new TypeError("MessageEvent: source must be a MessagePort");
  return (source ?? null) as MessagePort | null;
};

class MessageEvent extends Event {
  #data: unknown;
  #origin: string;
  #lastEventId: string;
  #source: MessagePort | null;
  #ports: readonly MessagePort[];
  constructor(type: string, init?: MessageInit) {
    takes(1, arguments, "MessageEvent");
    super(type, init as EventInit);
    const { data = null, lastEventId = "", origin = "", ports, source } = dictionary(init, "MessageEvent");
    this.#data = data;
    this.#lastEventId = `${lastEventId}`;
    this.#origin = `${origin}`.toWellFormed();
    this.#ports = portsOf(ports);
    this.#source = sourceOf(source);
  }
  get data(): unknown {
    return this.#data;
  }
  get origin(): string {
    return this.#origin;
  }
  get lastEventId(): string {
    return this.#lastEventId;
  }
  get source(): MessagePort | null {
    return this.#source;
  }
  get ports(): readonly MessagePort[] {
    return this.#ports;
  }
  initMessageEvent(type: string, bubbles?: boolean, cancelable?: boolean, data: unknown = null, origin = "", lastEventId = "", source: MessagePort | null = null, ports: Iterable<MessagePort> = []): void {
    takes(1, arguments, "initMessageEvent");
    this.#data; // a TypeError if it is another object
    if (this.eventPhase !== 0) return;
    this.initEvent(type, bubbles, cancelable);
    this.#data = data;
    this.#origin = `${origin}`.toWellFormed();
    this.#lastEventId = `${lastEventId}`;
    this.#source = sourceOf(source);
    this.#ports = portsOf(ports);
  }
}

const key = {};

// Private members of MessagePort that MessageChannel uses.
let entangle: (a: MessagePort, b: MessagePort) => void;

class MessagePort extends EventTarget {
  #other: MessagePort | null = null;
  /** The received messages, each with its ports. */
  #waiting: [unknown, object[]][] = [];
  #started = false;
  #detached = false;

  static {
    entangle = (a, b) => {
      a.#other = b;
      b.#other = a;
    };
    runner.transfers.push((value) => {
      if (!(value instanceof MessagePort) || value.#detached) return undefined;
      const receiver = new MessagePort(key);
      return {
        receiver,
        move() {
          if (value.#detached) throw new DOMException("structuredClone: the port was transferred by a getter", "DataCloneError");
          value.#detached = true;
          receiver.#waiting = value.#waiting;
          const other = value.#other;
          value.#other = null;
          value.#waiting = [];
          if (other) entangle(receiver, other);
        },
      };
    });
  }

  constructor(given: unknown) {
    if (given !== key) throw new TypeError("MessagePort has no public constructor: use the ports of a MessageChannel");
    super();
  }
  postMessage(message: unknown, options?: { transfer?: Iterable<object> } | Iterable<object>): void {
    takes(1, arguments, "postMessage");
    const other = this.#other;
    const transfer = isObject(options) && Symbol.iterator in options ? options : dictionary(options, "postMessage").transfer;
    const all: object[] = transfer === undefined ? [] : [...transfer];
    if (all.includes(this)) throw new DOMException("postMessage: a port cannot transfer itself", "DataCloneError");
    const [copy, received] = runner.clone(message, all);
    if (!other || all.includes(other)) return;
    other.#waiting.push([copy, received]);
    if (other.#started) other.#later();
  }
  start(): void {
    if (this.#started) return;
    this.#started = true;
    for (const _ of this.#waiting) this.#later();
  }
  close(): void {
    const other = this.#other;
    this.#detached = true;
    this.#other = null;
    if (!other) return;
    other.#other = null;
    runner.later("close", () => runner.fire(other, new Event("close")), 0);
  }
  get onmessage(): Handler {
    return runner.handlerOf(this, "message");
  }
  set onmessage(does: Handler) {
    runner.setHandler(this, "message", does);
    this.start();
  }
  get onmessageerror(): Handler {
    return runner.handlerOf(this, "messageerror");
  }
  set onmessageerror(does: Handler) {
    runner.setHandler(this, "messageerror", does);
  }
  get onclose(): Handler {
    return runner.handlerOf(this, "close");
  }
  set onclose(does: Handler) {
    runner.setHandler(this, "close", does);
  }
  #later(): void {
    runner.later("postMessage", () => {
      const next = this.#waiting.shift();
      if (!next) return; // the port was transferred
      const [data, received] = next;
      runner.fire(this, new MessageEvent("message", { data, ports: received.filter((one) => one instanceof MessagePort) }));
    }, 0);
  }
}

class MessageChannel {
  #port1 = new MessagePort(key);
  #port2 = new MessagePort(key);
  constructor() {
    entangle(this.#port1, this.#port2);
  }
  get port1(): MessagePort {
    return this.#port1;
  }
  get port2(): MessagePort {
    return this.#port2;
  }
}

expose("MessageEvent", MessageEvent);
expose("MessagePort", MessagePort);
expose("MessageChannel", MessageChannel);
