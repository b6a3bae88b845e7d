// node:perf_hooks: the global performance.

const none = (): undefined => undefined;

const { performance } = globalThis as any;

export default {
  performance,
  PerformanceObserver: class PerformanceObserver {
    static supportedEntryTypes: string[] = [];
    observe = none;
    disconnect = none;
  },
  constants: {},
};
