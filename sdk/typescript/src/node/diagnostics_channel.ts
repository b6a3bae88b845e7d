// node:diagnostics_channel.

type Subscriber = (message: unknown, name: string | symbol) => void;

class Channel {
  readonly name: string | symbol;
  private subscribers: Subscriber[] = [];
  private stores = new Map<any, ((data: any) => unknown) | undefined>();
  constructor(name: string | symbol) {
    this.name = name;
  }
  get hasSubscribers(): boolean {
    return this.subscribers.length > 0 || this.stores.size > 0;
  }
  subscribe(does: Subscriber): void {
    this.subscribers = [...this.subscribers, does];
  }
  unsubscribe(does: Subscriber): boolean {
    const at = this.subscribers.indexOf(does);
    if (at >= 0) this.subscribers = this.subscribers.toSpliced(at, 1);
    return at >= 0;
  }
  publish(message: unknown): void {
    for (const does of this.subscribers) {
      try {
        does(message, this.name);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
  bindStore(store: any, transform?: (data: any) => unknown): void {
    this.stores.set(store, transform);
  }
  unbindStore(store: any): boolean {
    return this.stores.delete(store);
  }
  runStores(data: any, does: (...values: any[]) => any, self?: unknown, ...values: any[]): any {
    let run = () => {
      this.publish(data);
      return does.apply(self, values);
    };
    for (const [store, transform] of this.stores) {
      const next = run;
      run = () => store.run(transform ? transform(data) : data, next);
    }
    return run();
  }
}

const channels = new Map<string | symbol, Channel>();

function channel(name: string | symbol): Channel {
  let found = channels.get(name);
  if (!found) channels.set(name, (found = new Channel(name)));
  return found;
}

const events = ["start", "end", "asyncStart", "asyncEnd", "error"] as const;

class TracingChannel {
  declare start: Channel;
  declare end: Channel;
  declare asyncStart: Channel;
  declare asyncEnd: Channel;
  declare error: Channel;
  constructor(given: any) {
    for (const name of events) this[name] = typeof given === "string" ? channel(`tracing:${given}:${name}`) : given[name];
  }
  get hasSubscribers(): boolean {
    return events.some((name) => this[name].hasSubscribers);
  }
  subscribe(does: Record<string, Subscriber>): void {
    for (const name of events) if (does[name]) this[name].subscribe(does[name]);
  }
  unsubscribe(does: Record<string, Subscriber>): boolean {
    return events.filter((name) => does[name]).every((name) => this[name].unsubscribe(does[name]));
  }
  traceSync(does: (...values: any[]) => any, context: any = {}, self?: unknown, ...values: any[]): any {
    return this.start.runStores(context, () => {
      try {
        return (context.result = does.apply(self, values));
      } catch (error) {
        context.error = error;
        this.error.publish(context);
        throw error;
      } finally {
        this.end.publish(context);
      }
    });
  }
  tracePromise(does: (...values: any[]) => any, context: any = {}, self?: unknown, ...values: any[]): any {
    const settle = (error: unknown, result?: unknown) => {
      if (error !== undefined) {
        context.error = error;
        this.error.publish(context);
      } else {
        context.result = result;
      }
      this.asyncStart.publish(context);
      this.asyncEnd.publish(context);
    };
    return this.start.runStores(context, () => {
      try {
        return Promise.resolve(does.apply(self, values)).then(
          (result) => (settle(undefined, result), result),
          (error) => {
            settle(error);
            throw error;
          },
        );
      } finally {
        this.end.publish(context);
      }
    });
  }
}

export default {
  channel,
  Channel,
  hasSubscribers: (name: string | symbol) => channels.get(name)?.hasSubscribers ?? false,
  subscribe: (name: string | symbol, does: Subscriber) => channel(name).subscribe(does),
  unsubscribe: (name: string | symbol, does: Subscriber) => channel(name).unsubscribe(does),
  tracingChannel: (given: unknown) => new TracingChannel(given),
};
