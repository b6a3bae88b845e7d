// node:stream: Duplex, Transform and PassThrough, with the other classes and the helpers.

import { coded } from "./errors.ts";
import { R, Readable } from "./readable.ts";
import { addAbort, type Callback, configure, defaultSize, define, duplex, inherit, S, Stream } from "./streambase.ts";
import { addHelpers } from "./streamhelpers.ts";
import { initWritable, Writable, writableMethods } from "./writable.ts";

export function Duplex(this: any, options: any = {}): any {
  if (!(this instanceof (Duplex as any))) return new (Duplex as any)(options);
  R.call(this, options);
  this.allowHalfOpen = options?.allowHalfOpen !== false;
  initWritable(this, options);
  configure(this, options, ["write", "writev", "final", "destroy", "construct"]);
}
inherit(Duplex, Readable);
(Duplex as any).prototype[duplex] = true;
define((Duplex as any).prototype, writableMethods);

export function Transform(this: any, options: any = {}): any {
  if (!(this instanceof (Transform as any))) return new (Transform as any)(options);
  (Duplex as any).call(this, options);
  if (typeof options?.transform === "function") this._transform = options.transform;
  if (typeof options?.flush === "function") this._flush = options.flush;
  this._waitsForRead = null;
}
inherit(Transform, Duplex);
define((Transform as any).prototype, {
  _transform() {
    throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "The _transform() method is not implemented");
  },
  _write(this: any, chunk: any, encoding: string, done: Callback) {
    this._transform(chunk, encoding, (error?: any, value?: any) => {
      if (error) return done(error);
      if (value !== undefined && value !== null) this.push(value);
      const state = this._readableState;
      if (state.length < state.highWaterMark || state.ended) done();
      else this._waitsForRead = done;
    });
  },
  _read(this: any) {
    this._readableState.reading = false;
    const done = this._waitsForRead;
    this._waitsForRead = null;
    done?.();
  },
  _final(this: any, done: Callback) {
    if (typeof this._flush !== "function") {
      this.push(null);
      return done();
    }
    this._flush((error?: any, value?: any) => {
      if (error) return done(error);
      if (value !== undefined && value !== null) this.push(value);
      this.push(null);
      done();
    });
  },
});

export function PassThrough(this: any, options: any = {}): any {
  if (!(this instanceof (PassThrough as any))) return new (PassThrough as any)(options);
  (Transform as any).call(this, options);
}
inherit(PassThrough, Transform);
(PassThrough as any).prototype._transform = (chunk: any, _encoding: string, done: Callback) => done(null, chunk);

addHelpers(S, { Stream, Readable, Writable, Duplex, Transform, PassThrough, addAbortSignal: addAbort, defaultSize });

export default S;
