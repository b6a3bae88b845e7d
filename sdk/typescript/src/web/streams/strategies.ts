// ByteLengthQueuingStrategy and CountQueuingStrategy (Streams Standard, 7.2 and 7.3).

import { standardize } from "../define.ts";
import { dictionary } from "./common.ts";
import { inner, share, stamp } from "./inner.ts";

function markIn(given: any): Mark {
  const { highWaterMark } = dictionary(given, "the options of a strategy");
  if (highWaterMark === undefined) throw new TypeError("a strategy needs a highWaterMark");
  return new Mark(+highWaterMark);
}

// One function for all strategies of a kind.
const bytes = { size: (chunk: any) => chunk.byteLength };
const one = { size: () => 1 };
standardize("", bytes);
standardize("", one);

/** A strategy, whose state is its high water mark. */
class Mark {
  declare readonly mark: number;
  constructor(mark: number) {
    this.mark = mark;
  }
}

export class ByteLengthQueuingStrategy {
  constructor(init: unknown) {
    stamp(this, markIn(init));
  }
  get highWaterMark(): number {
    return inner(this, Mark).mark;
  }
  get size(): (chunk: any) => number {
    inner(this, Mark);
    return bytes.size;
  }
}

export class CountQueuingStrategy {
  constructor(init: unknown) {
    stamp(this, markIn(init));
  }
  get size(): () => number {
    inner(this, Mark);
    return one.size;
  }
}

share(ByteLengthQueuingStrategy, CountQueuingStrategy, "highWaterMark");
