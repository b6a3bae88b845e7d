/** The options of a watch. */
export interface WatchOptions {
  /** Stops the watch. An iteration throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /**
   * Called when the app answers with an error in place of a value. If ended is false, the watch goes on, and the next answer
   * may be a value again. If ended is true, the watch has ended, such as after the key was revoked. An iteration throws the
   * error that ends it instead. Without onError, the error that ends a watch with a callback is an uncaught error.
   */
  onError?: ((error: ProblemError, ended: boolean) => void) | undefined;
}

interface WatchRequest extends WatchOptions {
  query?: object | undefined;
  params?: Record<string, Param>;
}

// The type Client declares the types of each watch: with onValue it returns a function that stops it, otherwise an iterable.
type Watch = (request?: WatchRequest, onValue?: (value: any) => void) => any;

interface Listener {
  value(value: unknown): void;
  error(error: ProblemError, ended: boolean): void;
}

// The maximum number of watches of one connection.
const maxWatches = 100;
// Milliseconds without a byte after which a connection counts as lost. The server sends a comment after 15 s.
const maxSilence = 45_000;
// Milliseconds after the renewal of a refused credential in which another refusal ends the watch.
const renewalTime = 30_000;

// watcher returns a function that makes the watch method of a live route. Watches with the same path live share connections.
function watcher(transport: Transport): (live: string, path: string) => Watch {
  const open = new Map<string, Set<LiveConnection>>();

  const connection = (live: string, url: string): LiveConnection => {
    const all = open.get(live) ?? new Set();
    open.set(live, all);
    const usable = [...all].find((c) => c.watches(url)) ?? [...all].find((c) => c.size() < maxWatches);
    if (usable) {
      return usable;
    }
    const created = liveConnection(transport, live, () => all.delete(created));
    all.add(created);
    return created;
  };

  return (live, path) => (request = {}, onValue) => {
    const url = target(path, request.params ?? {}, request.query ?? {});
    const start = (listener: Listener) => connection(live, url).watch(url, listener);
    const { signal, onError } = request;
    if (!onValue) {
      return { [Symbol.asyncIterator]: () => iterate(start, request) };
    }
    if (signal?.aborted) {
      return () => {};
    }
    const stop = start({
      value: onValue,
      error(error, ended) {
        if (onError) {
          onError(error, ended);
        } else if (ended) {
          throw error;
        }
      },
    });
    signal?.addEventListener("abort", stop, { once: true });
    return () => {
      signal?.removeEventListener("abort", stop);
      stop();
    };
  };
}

// iterate returns an iterator that gives the newest value when the reader asks for the next one, and skips older ones.
function iterate(start: (listener: Listener) => () => void, { signal, onError }: WatchOptions): AsyncIterator<unknown> {
  let newest: { value: unknown } | undefined;
  let over: "returned" | { reason: unknown } | undefined;
  let wake = () => {};
  const end = (how: typeof over) => {
    over ??= how;
    wake();
  };
  const abort = () => {
    newest = undefined;
    end({ reason: signal?.reason });
  };
  async function* values() {
    const stop = start({
      value(value) {
        newest = { value };
        wake();
      },
      error(error, ended) {
        if (ended) {
          end({ reason: error });
        } else {
          onError?.(error, false);
        }
      },
    });
    signal?.addEventListener("abort", abort);
    if (signal?.aborted) {
      abort();
    }
    try {
      while (over !== "returned") {
        if (newest) {
          const { value } = newest;
          newest = undefined;
          yield value;
        } else if (over) {
          throw over.reason;
        } else {
          await new Promise<void>((resolve) => (wake = resolve));
        }
      }
    } finally {
      signal?.removeEventListener("abort", abort);
      stop();
    }
  }
  const all = values();
  return {
    next: () => all.next(),
    return() {
      end("returned"); // also wakes a pending call of next
      return all.return(undefined);
    },
  };
}

// Watched is a path that one or more listeners watch.
interface Watched {
  readonly name: string;
  readonly path: string;
  readonly listeners: Set<Listener>;
  /** The id of the last event, so that the server does not send that event again. */
  lastEventId?: string | undefined;
  /** The last value or error, for listeners that are added later. */
  last?: { value: unknown } | { error: ProblemError };
}

interface LiveConnection {
  /** The number of different watches. */
  size(): number;
  /** Whether there is a watch of the path and query. */
  watches(url: string): boolean;
  /** Adds a listener, and returns a function that removes it. After the last one the connection is closed for good. */
  watch(url: string, listener: Listener): () => void;
}

// liveConnection is one connection for up to maxWatches watches. It is opened again, with the last ids, until no watch is
// left. Changes in one turn of the event loop are sent together. Each listener is called in its own microtask, so an error
// that it throws is an uncaught error of the page, and does not end the connection.
function liveConnection(transport: Transport, live: string, onClose: () => void): LiveConnection {
  const watched = new Map<string, Watched>(); // by path
  const closed = new AbortController();
  let attempt = new AbortController(); // aborted when this attempt is over
  let known = new Set<string>(); // the names of the watches that the server has
  let token: string | undefined; // of the open connection
  let credential: string | undefined; // of this attempt
  let renewed = -Infinity; // the time when a refused credential was replaced
  let names = 0;
  let [running, scheduled, updating] = [false, false, false];

  const post = (body: unknown, signal: AbortSignal) =>
    transport.send("POST", live, { json: true, body: JSON.stringify(body), headers: { accept: "text/event-stream" }, signal }, credential);
  const asked = ({ name, path, lastEventId }: Watched) => ({ name, path, lastEventId });

  function watch(path: string, listener: Listener): () => void {
    const one: Watched = watched.get(path) ?? { name: String(++names), path, listeners: new Set() };
    watched.set(path, one);
    one.listeners.add(listener);
    if (one.last) {
      tell(one, listener, one.last);
    }
    schedule();
    return () => {
      if (one.listeners.delete(listener) && one.listeners.size === 0 && watched.get(path) === one) {
        watched.delete(path);
        schedule();
      }
    };
  }

  function tell(one: Watched, listener: Listener, last: NonNullable<Watched["last"]>) {
    queueMicrotask(() => {
      if (!one.listeners.has(listener)) {
        return; // it was stopped
      }
      if ("value" in last) {
        listener.value(last.value);
      } else {
        listener.error(last.error, false);
      }
    });
  }

  function schedule() {
    if (!scheduled) {
      scheduled = true;
      queueMicrotask(() => {
        scheduled = false;
        void update();
      });
    }
  }

  // update tells the server which watches to add and to remove.
  async function update() {
    if (watched.size === 0) {
      closed.abort();
      attempt.abort();
      onClose();
      return;
    }
    if (!running) {
      running = true;
      void run();
    }
    if (token === undefined || updating) {
      return; // the open event, or the end of the other update, calls it again
    }
    const all = [...watched.values()];
    const add = all.filter(({ name }) => !known.has(name)).map(asked);
    const remove = [...known].filter((name) => !all.some((one) => one.name === name));
    if (add.length + remove.length === 0) {
      return;
    }
    const current = attempt;
    updating = true;
    known = new Set(all.map(({ name }) => name));
    try {
      const response = await post({ connection: token, add, remove }, current.signal);
      await response.body?.cancel();
      if (!response.ok) {
        current.abort(); // the connection is not open any more
      }
    } catch {
      current.abort();
    }
    updating = false;
    schedule();
  }

  async function run() {
    for (let failures = 0; !closed.signal.aborted; failures++) {
      const current = (attempt = new AbortController());
      const before = failures;
      let wait = 0;
      let silence: ReturnType<typeof setTimeout> | undefined;
      const heard = () => {
        clearTimeout(silence);
        silence = setTimeout(() => current.abort(), maxSilence);
      };
      heard();
      try {
        credential = await transport.credential();
        const all = [...watched.values()];
        known = new Set(all.map(({ name }) => name));
        const response = await post({ watches: all.map(asked) }, current.signal);
        if (response.ok && response.body) {
          for await (const event of readEvents(response.body, heard)) {
            if (current.signal.aborted) {
              break;
            }
            if (event.event === "open") {
              token = JSON.parse(event.data).connection;
              failures = 0;
              schedule();
            } else if (event.event === "end" && eventProblem(event.data).status >= 500) {
              failures = before; // the server cannot answer now: this counts as a failed attempt
              break;
            } else {
              receive(event, current);
            }
          }
        } else {
          const refusal = await problem(response);
          if (refusal.status >= 500 || refusal.status === 429 || refusal.status === 408) {
            wait = refusal.retryAfter ?? 0;
          } else {
            await end([...watched.values()], refusal, current);
          }
        }
      } catch {
        // The network failed, or the attempt was aborted.
      }
      clearTimeout(silence);
      token = undefined;
      current.abort();
      const backoff = Math.min(30, 0.5 * 2 ** failures) * (0.5 + Math.random() / 2);
      await pause(Math.max(wait, backoff), closed.signal).catch(() => {});
    }
  }

  function receive(event: ServerEvent, current: AbortController) {
    const one = [...watched.values()].find(({ name }) => name === event.watch);
    if (!one) {
      return; // removed meanwhile
    }
    if (event.event === "end") {
      void end([one], eventProblem(event.data), current);
    } else if (event.event === "value" || event.event === "problem") {
      one.lastEventId = event.id;
      const last = (one.last = event.event === "value" ? { value: eventValue(event.data) } : { error: eventProblem(event.data) });
      one.listeners.forEach((listener) => tell(one, listener, last));
    }
  }

  // end ends watches, unless they were refused for a credential that the client can replace: then it connects again.
  async function end(some: Watched[], error: ProblemError, current: AbortController) {
    if (error.status === 401 && Date.now() - renewed > renewalTime) {
      const next = await transport.credential().catch(() => undefined);
      if (current.signal.aborted) {
        return;
      }
      if (next !== undefined && next !== credential) {
        renewed = Date.now();
        current.abort();
        return;
      }
    }
    for (const one of some) {
      known.delete(one.name);
      if (watched.get(one.path) === one) {
        watched.delete(one.path);
      }
      for (const listener of one.listeners) {
        queueMicrotask(() => {
          if (one.listeners.delete(listener)) {
            listener.error(error, true);
          }
        });
      }
    }
    schedule();
  }

  return { size: () => watched.size, watches: (path) => watched.has(path), watch };
}

// ServerEvent has the fields of an event.
interface ServerEvent {
  event: string;
  data: string;
  id?: string | undefined;
  watch?: string | undefined;
}

// readEvents reads server-sent events (HTML Standard, 9.2.6). It calls heard when bytes arrive.
async function* readEvents(body: ReadableStream<Uint8Array>, heard: () => void): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let unfinished = ""; // the start of a line whose end has not arrived
  let afterCR = false; // the last byte was a CR: a LF that follows belongs to the same line end
  let fields = new Map<string, string>();
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return; // an event without its empty line is incomplete
      }
      heard();
      let text = decoder.decode(value, { stream: true });
      if (text === "") {
        continue;
      }
      if (afterCR && text.startsWith("\n")) {
        text = text.slice(1);
      }
      afterCR = text.endsWith("\r");
      const [first = "", ...further] = text.split(/\r\n|\r|\n/);
      const lines = [unfinished + first, ...further];
      unfinished = lines.pop() ?? "";
      for (const line of lines) {
        const [, name = "", content = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
        if (line === "") {
          if (data.length > 0) {
            yield { event: fields.get("event") ?? "message", data: data.join("\n"), id: fields.get("id"), watch: fields.get("watch") };
          }
          [fields, data] = [new Map(), []];
        } else if (name === "data") {
          data.push(content);
        } else if (name !== "") {
          fields.set(name, content); // a line without a name is a comment
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// eventValue returns the value of an answer: parsed JSON, text if it is not JSON, or undefined if it is empty.
function eventValue(data: string): unknown {
  if (data === "") {
    return undefined;
  }
  try {
    return JSON.parse(data);
  } catch {
    return data;
  }
}

// eventProblem returns the error of a problem or end event.
function eventProblem(data: string): ProblemError {
  const body = eventValue(data);
  const { status, requestId } = Object(body) as Record<string, unknown>;
  const headers = new Headers({ "content-type": "application/problem+json" });
  if (typeof requestId === "string") {
    headers.set("x-request-id", requestId);
  }
  const known = typeof status === "number" && status >= 400 && status <= 599;
  return new ProblemError(new Response(null, { status: known ? status : 500, headers }), body);
}
