// DOMException (Web IDL, 2.8.1): an error of the platform, which its name tells.

export class DOMException extends Error {
  constructor(message = "", name = "Error") {
    super(message);
    Object.defineProperty(this, "name", { value: String(name), configurable: true });
  }
  /** The numbers that old names have; 0 for others. */
  get code(): number {
    return ({ NotSupportedError: 9, SyntaxError: 12, InvalidAccessError: 15, AbortError: 20, TimeoutError: 23, DataCloneError: 25 } as Record<string, number>)[this.name] ?? 0;
  }
}
