// CryptoKey (W3C, Web Cryptography Level 2, section 13). A CryptoKey keeps the key as the host returned it, and passes it back.

import { fromBase64 } from "./encoding.ts";

/** A key in the form of the host's operations. */
export interface HostKey {
  type: string;
  algorithm: any;
  usages?: string[];
  data: unknown;
}

export let hostKey: (key: CryptoKey) => HostKey;
/** Whether a key may be exported, whatever a script has made of the accessor. */
export let isExtractable: (key: CryptoKey) => boolean;
export let make: (key: HostKey, extractable: boolean) => CryptoKey;
/** Serializes and deserializes a key (section 13.5); undefined for other objects. */
export let cloneKey: (value: object) => object | undefined;

export class CryptoKey {
  readonly #key: HostKey;
  readonly #extractable: boolean;
  #algorithm: any; // made when it is first read; it is always the same object
  #usages: string[] | undefined;

  static {
    hostKey = (key) => {
      if (typeof key !== "object" || key === null || !(#key in key)) throw new TypeError("crypto.subtle: the key is not a CryptoKey");
      return key.#key;
    };
    isExtractable = (key) => key.#extractable;
    cloneKey = (value) => (#key in value ? make(value.#key, value.#extractable) : undefined);
    make = (key, extractable) => new (CryptoKey as any)(make, key, extractable);
  }

  constructor() {
    const [maker, key, extractable] = arguments as unknown as [unknown, HostKey, boolean];
    if (maker !== make) throw new TypeError("CryptoKey has no public constructor: use crypto.subtle.importKey or generateKey");
    this.#key = key;
    this.#extractable = extractable;
  }
  get type(): string {
    return this.#key.type;
  }
  get extractable(): boolean {
    return this.#extractable;
  }
  get algorithm(): any {
    if (this.#algorithm === undefined) {
      const { hash, publicExponent, ...rest } = this.#key.algorithm;
      if (hash !== undefined) rest.hash = { name: hash };
      if (publicExponent !== undefined) rest.publicExponent = fromBase64(publicExponent.base64);
      this.#algorithm = rest;
    }
    return this.#algorithm;
  }
  get usages(): string[] {
    return (this.#usages ??= [...(this.#key.usages ?? [])]);
  }
}
