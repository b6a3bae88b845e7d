// Event, CustomEvent and EventTarget (DOM Standard, 2), and MessageChannel (HTML, 9.4). There is
// no tree: an event goes to its target alone.

import { define } from "./console.ts";
import { type Runner } from "./host.ts";
import { startInternal } from "./timers.ts";

type Listener = ((event: Event) => unknown) | { handleEvent(event: Event): unknown };

interface Entry {
  type: string;
  listener: Listener;
  capture: boolean;
  once: boolean;
}

// Reports what a listener throws (HTML, 8.1.4.7): the others are called all the same.
let uncaught: (error: unknown) => void;

// What only a target does with an event.
let begin: (event: Event, target: EventTarget) => void;
let end: (event: Event) => void;
let isStopped: (event: Event) => boolean;

class Event {
  static readonly NONE = 0;
  static readonly CAPTURING_PHASE = 1;
  static readonly AT_TARGET = 2;
  static readonly BUBBLING_PHASE = 3;

  readonly type: string;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly composed: boolean;
  readonly timeStamp = Date.now();
  readonly isTrusted = false;
  #target: EventTarget | null = null;
  #current: EventTarget | null = null;
  #prevented = false;
  #stopped = false;

  static {
    begin = (event, target) => {
      if (event.#current) throw new TypeError(`dispatchEvent: the event ${event.type} is dispatched already`);
      event.#target = event.#current = target;
      event.#stopped = false;
    };
    end = (event) => (event.#current = null);
    isStopped = (event) => event.#stopped;
  }

  constructor(type: string, init: { bubbles?: boolean; cancelable?: boolean; composed?: boolean } = {}) {
    this.type = String(type);
    this.bubbles = Boolean(init?.bubbles);
    this.cancelable = Boolean(init?.cancelable);
    this.composed = Boolean(init?.composed);
  }
  get target(): EventTarget | null {
    return this.#target;
  }
  get currentTarget(): EventTarget | null {
    return this.#current;
  }
  get eventPhase(): number {
    return this.#current ? Event.AT_TARGET : Event.NONE;
  }
  get defaultPrevented(): boolean {
    return this.#prevented;
  }
  composedPath(): EventTarget[] {
    return this.#current ? [this.#current] : [];
  }
  preventDefault(): void {
    this.#prevented ||= this.cancelable;
  }
  stopPropagation(): void {}
  stopImmediatePropagation(): void {
    this.#stopped = true;
  }
}

class CustomEvent extends Event {
  readonly detail: unknown;
  constructor(type: string, init: { detail?: unknown; bubbles?: boolean; cancelable?: boolean; composed?: boolean } = {}) {
    super(type, init);
    this.detail = init?.detail ?? null;
  }
}

class EventTarget {
  #entries: Entry[] = [];

  addEventListener(type: string, listener: Listener | null, options: boolean | { capture?: boolean; once?: boolean; signal?: AbortSignal } = {}): void {
    const { capture = false, once = false, signal } = typeof options === "object" && options ? options : { capture: Boolean(options) };
    if (!listener || signal?.aborted || this.#at(type, listener, capture) >= 0) return;
    this.#entries.push({ type: String(type), listener, capture, once });
    signal?.addEventListener("abort", () => this.removeEventListener(type, listener, capture));
  }
  removeEventListener(type: string, listener: Listener | null, options: boolean | { capture?: boolean } = {}): void {
    const capture = Boolean(typeof options === "object" && options ? options.capture : options);
    const at = listener ? this.#at(type, listener, capture) : -1;
    if (at >= 0) this.#entries.splice(at, 1);
  }
  dispatchEvent(event: Event): boolean {
    if (!(event instanceof Event)) throw new TypeError("dispatchEvent: it takes an Event");
    begin(event, this);
    try {
      for (const entry of this.#entries.filter((entry) => entry.type === event.type)) {
        if (!this.#entries.includes(entry)) continue; // removed meanwhile
        if (entry.once) this.removeEventListener(entry.type, entry.listener, entry.capture);
        try {
          if (typeof entry.listener === "function") entry.listener.call(this, event);
          else entry.listener.handleEvent(event);
        } catch (error) {
          uncaught(error);
        }
        if (isStopped(event)) break;
      }
    } finally {
      end(event);
    }
    return !event.defaultPrevented;
  }
  #at(type: string, listener: Listener, capture: boolean): number {
    return this.#entries.findIndex((e) => e.type === String(type) && e.listener === listener && e.capture === capture);
  }
}

class MessageEvent extends Event {
  readonly data: unknown;
  constructor(type: string, init: { data?: unknown } = {}) {
    super(type);
    this.data = init?.data ?? null;
  }
}

// What only a channel does with its ports.
let entangle: (a: MessagePort, b: MessagePort) => void;

class MessagePort extends EventTarget {
  #other: MessagePort | null = null;
  #waiting: unknown[] = [];
  #started = false;
  #onmessage: ((event: MessageEvent) => unknown) | null = null;

  static {
    entangle = (a, b) => {
      a.#other = b;
      b.#other = a;
    };
  }

  get onmessage(): ((event: MessageEvent) => unknown) | null {
    return this.#onmessage;
  }
  set onmessage(does: ((event: MessageEvent) => unknown) | null) {
    this.#onmessage = typeof does === "function" ? does : null;
    this.start();
  }
  postMessage(data: unknown, options?: { transfer?: ArrayBuffer[] } | ArrayBuffer[]): void {
    const copy = structuredClone(data, Array.isArray(options) ? { transfer: options } : options);
    const other = this.#other;
    if (!other) return;
    other.#waiting.push(copy);
    if (other.#started) other.#later();
  }
  start(): void {
    if (this.#started) return;
    this.#started = true;
    for (const _ of this.#waiting) this.#later();
  }
  close(): void {
    if (this.#other) this.#other.#other = null;
    this.#other = null;
  }
  #later(): void {
    startInternal("postMessage", () => {
      const event = new MessageEvent("message", { data: this.#waiting.shift() });
      try {
        this.#onmessage?.call(this, event);
      } catch (error) {
        uncaught(error);
      }
      this.dispatchEvent(event);
    }, 0);
  }
}

class MessageChannel {
  readonly port1 = new MessagePort();
  readonly port2 = new MessagePort();
  constructor() {
    entangle(this.port1, this.port2);
  }
}

export function installEvents(runner: Runner): void {
  uncaught = runner.uncaught;
  define("Event", Event);
  define("CustomEvent", CustomEvent);
  define("EventTarget", EventTarget);
  define("MessageEvent", MessageEvent);
  define("MessagePort", MessagePort);
  define("MessageChannel", MessageChannel);
}
