// Event, CustomEvent and EventTarget (DOM Standard, 2). Targets have no parents: only the target gets an event. The
// global is a target too: the methods of EventTarget called without an object, or with globalThis, are its own.

import { define, expose } from "./define.ts";
import { DOMException } from "./exception.ts";
import { type Runner } from "../host.ts";
import { dictionary, isObject, takes } from "./idl.ts";
import { now } from "./clock.ts";

type Handler = ((event: Event) => unknown) | null;
type Listener = ((event: Event) => unknown) | { handleEvent(event: Event): unknown };

interface Entry {
  type: string;
  listener: Listener | null;
  capture: boolean;
  once: boolean;
  passive: boolean;
  removed: boolean;
  /** Of an event handler attribute: its function. */
  handler?: NonNullable<Handler>;
}

// The flags of an event (DOM Standard, 2.2).
const Bubbles = 1;
const Cancelable = 2;
const Composed = 4;
const Dispatching = 8;
const Stopped = 16;
const StoppedNow = 32;
const Canceled = 64;
const Passive = 128;
const Trusted = 256;

const phases = { NONE: 0, CAPTURING_PHASE: 1, AT_TARGET: 2, BUBBLING_PHASE: 3 };

let report: (error: unknown) => void;

// Private members of Event that EventTarget uses.
let isTrusted: (event: Event) => boolean;
let dispatch: (event: Event, at: object, target: EventTarget, trusted: number) => boolean;

// isTrusted is an own property of each event (LegacyUnforgeable), with one getter for all.
const unforgeable: PropertyDescriptor = {
  get: Object.getOwnPropertyDescriptor({ get isTrusted() { return isTrusted(this as unknown as Event); } }, "isTrusted")!.get,
  enumerable: true,
  configurable: false,
};

export class Event {
  #type: string;
  #flags = 0;
  #target: object | null = null;
  #time = now();

  static {
    isTrusted = (event) => (event.#flags & Trusted) !== 0;
    // DOM Standard, 2.9. Those that capture are called first. With var, as each use of let and const is checked.
    dispatch = function (event, at, target, trusted) {
      if (event.#flags & Dispatching) throw new DOMException(`dispatchEvent: the event ${event.#type} is already being dispatched`, "InvalidStateError");
      event.#target = at;
      event.#flags = (event.#flags & ~Trusted) | Dispatching | trusted;
      var list = listOf(target);
      if (list !== undefined) {
        if (list.some(captures)) invoke(event, at, target, list, true);
        invoke(event, at, target, list, false);
      }
      event.#flags &= ~(Dispatching | Stopped | StoppedNow);
      return (event.#flags & Canceled) === 0;
    };
    function invoke(event: Event, at: object, target: EventTarget, list: Entry[], capture: boolean): void {
      if (event.#flags & Stopped) return;
      var type = event.#type;
      list = list.slice(); // those that are added meanwhile are not called
      for (var i = 0; i < list.length; i++) {
        var entry = list[i];
        if (entry.type !== type || entry.capture !== capture || entry.removed) continue;
        if (entry.once) remove(target, entry);
        if (entry.passive) event.#flags |= Passive;
        try {
          call(entry, at, event);
        } catch (error) {
          report(error);
        }
        event.#flags &= ~Passive;
        if (event.#flags & StoppedNow) return;
      }
    }
  }

  constructor(type: string, init?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean } | null) {
    takes(1, arguments, "Event");
    this.#type = `${type}`;
    if (init !== undefined) {
      const { bubbles, cancelable, composed } = dictionary(init, "Event");
      this.#flags = (bubbles ? Bubbles : 0) | (cancelable ? Cancelable : 0) | (composed ? Composed : 0);
    }
    Object.defineProperty(this, "isTrusted", unforgeable);
  }
  get type(): string {
    return this.#type;
  }
  get target(): object | null {
    return this.#target;
  }
  get srcElement(): object | null {
    return this.#target;
  }
  get currentTarget(): object | null {
    return this.#flags & Dispatching ? this.#target : null;
  }
  composedPath(): object[] {
    return this.#flags & Dispatching ? [this.#target!] : [];
  }
  get eventPhase(): number {
    return this.#flags & Dispatching ? phases.AT_TARGET : phases.NONE;
  }
  stopPropagation(): void {
    this.#flags |= Stopped;
  }
  get cancelBubble(): boolean {
    return (this.#flags & Stopped) !== 0;
  }
  set cancelBubble(stops: boolean) {
    this.#flags |= stops ? Stopped : 0;
  }
  stopImmediatePropagation(): void {
    this.#flags |= Stopped | StoppedNow;
  }
  get bubbles(): boolean {
    return (this.#flags & Bubbles) !== 0;
  }
  get cancelable(): boolean {
    return (this.#flags & Cancelable) !== 0;
  }
  get returnValue(): boolean {
    return (this.#flags & Canceled) === 0;
  }
  set returnValue(keeps: boolean) {
    if (!keeps || !(#flags in this)) this.preventDefault();
  }
  preventDefault(): void {
    if ((this.#flags & (Cancelable | Passive)) === Cancelable) this.#flags |= Canceled;
  }
  get defaultPrevented(): boolean {
    return (this.#flags & Canceled) !== 0;
  }
  get composed(): boolean {
    return (this.#flags & Composed) !== 0;
  }
  get timeStamp(): number {
    return this.#time;
  }
  initEvent(type: string, bubbles?: boolean, cancelable?: boolean): void {
    takes(1, arguments, "initEvent");
    const name = `${type}`;
    if (this.#flags & Dispatching) return;
    this.#type = name;
    this.#target = null;
    this.#flags = (bubbles ? Bubbles : 0) | (cancelable ? Cancelable : 0) | (this.#flags & Composed);
  }
}

export class CustomEvent extends Event {
  #detail: unknown;
  constructor(type: string, init?: { detail?: unknown; bubbles?: boolean; cancelable?: boolean; composed?: boolean }) {
    takes(1, arguments, "CustomEvent");
    super(type, init);
    this.#detail = init?.detail ?? null;
  }
  get detail(): unknown {
    return this.#detail;
  }
  initCustomEvent(type: string, bubbles?: boolean, cancelable?: boolean, detail: unknown = null): void {
    takes(1, arguments, "initCustomEvent");
    if (this.eventPhase === phases.NONE) this.#detail = detail;
    this.initEvent(type, bubbles, cancelable);
  }
}

/** Has a signal remove a listener when it is aborted; false: it is aborted already. abort.ts sets it, as it imports this file. */
export const signals: { follow: (signal: unknown, remove: () => void) => boolean } = { follow: () => true };

// Lists are made when the first listener is added.
let listOf: (target: EventTarget, make?: boolean) => Entry[] | undefined;

export class EventTarget {
  #entries: Entry[] | undefined = undefined;

  static {
    listOf = (target, make) => (make ? (target.#entries ??= []) : target.#entries);
  }

  addEventListener(type: string, listener: Listener | null, options?: boolean | { capture?: boolean; once?: boolean; passive?: boolean; signal?: AbortSignal }): void {
    takes(2, arguments, "addEventListener");
    const target = targetOf(this);
    const entry: Entry = { type: `${type}`, listener: listenerOf(listener), capture: false, once: false, passive: false, removed: false };
    if (isObject(options)) {
      const { capture, once, passive, signal } = options as { capture?: boolean; once?: boolean; passive?: boolean; signal?: AbortSignal };
      entry.capture = Boolean(capture);
      entry.once = Boolean(once);
      entry.passive = Boolean(passive);
      if (signal !== undefined && !signals.follow(signal, () => remove(target, entry))) return;
    } else {
      entry.capture = Boolean(options);
    }
    if (entry.listener && find(target, entry.type, entry.listener, entry.capture) === undefined) listOf(target, true)!.push(entry);
  }
  removeEventListener(type: string, listener: Listener | null, options?: boolean | { capture?: boolean }): void {
    takes(2, arguments, "removeEventListener");
    const target = targetOf(this);
    const entry = find(target, `${type}`, listenerOf(listener), Boolean(isObject(options) ? (options as { capture?: boolean }).capture : options));
    if (entry) remove(target, entry);
  }
  dispatchEvent(event: Event): boolean {
    takes(1, arguments, "dispatchEvent");
    const target = targetOf(this);
    if (!(event instanceof Event)) throw new TypeError("dispatchEvent: the argument must be an Event");
    return dispatch(event, placeOf(target), target, 0);
  }
}

const own = new EventTarget(); // stands for the global

/** The target that this of a method means. It is a TypeError if it is another object. */
function targetOf(given: unknown): EventTarget {
  if (given === undefined || given === null || given === globalThis) return own;
  listOf(given as EventTarget);
  return given as EventTarget;
}

const placeOf = (target: EventTarget): object => (target === own ? globalThis : target);

function listenerOf(given: unknown): Listener | null {
  if (given !== undefined && given !== null && !isObject(given)) throw new TypeError("a listener must be a function, or an object with handleEvent");
  return (given ?? null) as Listener | null;
}

function find(target: EventTarget, type: string, listener: Listener | null, capture: boolean): Entry | undefined {
  return listOf(target)?.find((entry) => entry.type === type && entry.listener === listener && entry.capture === capture);
}

function remove(target: EventTarget, entry: Entry): void {
  entry.removed = true;
  const list = listOf(target);
  const at = list ? list.indexOf(entry) : -1;
  if (at >= 0) list!.splice(at, 1);
}

const captures = (entry: Entry): boolean => entry.capture;

function call({ listener, handler }: Entry, at: object, event: Event): void {
  if (typeof listener === "function") {
    listener.call(at, event);
  } else if (handler) {
    if (handler.call(at, event) === false) event.preventDefault();
  } else {
    const { handleEvent } = listener!;
    if (typeof handleEvent !== "function") throw new TypeError("a listener must be a function, or an object with handleEvent");
    handleEvent.call(listener, event);
  }
}

/** Whether a target has listeners. */
export const listens = (target: EventTarget): boolean => (listOf(target)?.length ?? 0) > 0;

/** Dispatches a trusted event, which the platform has created. */
export function fire(target: object, event: Event): boolean {
  const at = targetOf(target);
  return dispatch(event, placeOf(at), at, Trusted);
}

/** The function of an event handler attribute (HTML, 8.1.8.1). */
export const handlerOf = (target: EventTarget, type: string): Handler => listOf(targetOf(target))?.find((entry) => entry.handler && entry.type === type)?.handler ?? null;

/** Sets it. It keeps its place among the listeners. A value that is not an object removes it. */
export function setHandler(target: EventTarget, type: string, value: unknown): void {
  const at = targetOf(target);
  const entry = listOf(at)?.find((one) => one.handler && one.type === type);
  const handler = isObject(value) ? (typeof value === "function" ? value : () => {}) as NonNullable<Handler> : null;
  if (!handler) {
    if (entry) remove(at, entry);
  } else if (entry) {
    entry.handler = handler;
  } else {
    listOf(at, true)!.push({ type, listener: null, capture: false, once: false, passive: false, removed: false, handler });
  }
}

export function installEvents(runner: Runner): void {
  report = (error) => runner.uncaught(error);
  runner.fire = fire as Runner["fire"];
  runner.handlerOf = handlerOf as Runner["handlerOf"];
  runner.setHandler = setHandler as Runner["setHandler"];
  expose("Event", Event, phases);
  expose("CustomEvent", CustomEvent);
  expose("EventTarget", EventTarget);
  const { addEventListener, dispatchEvent, removeEventListener } = EventTarget.prototype;
  define("addEventListener", addEventListener);
  define("dispatchEvent", dispatchEvent);
  define("removeEventListener", removeEventListener);
}
