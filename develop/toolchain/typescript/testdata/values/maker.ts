// Makes values of every kind from a seed, the same ones each time.

class Point {
  constructor(public x: number, public y: unknown) {}
}
class Money {
  constructor(readonly cents: number) {}
  toJSON(key: string) {
    return key + this.cents;
  }
}

export class Maker {
  private state: number;
  constructor(seed: number) {
    this.state = seed + 1;
  }
  next(below: number): number {
    this.state = (Math.imul(this.state ^ (this.state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) | 0;
    return ((this.state ^ (this.state >>> 13)) >>> 0) % below;
  }
  text(): string {
    const pieces = ["", "a", "lamp", "a lamp of brass", "\"", "\\", "\n\t\b\f\r", "\u0000\u001f\u007f", "\u00e9\u00ff", "\u20ac", "\u{1f600}", "\ud800", "\udc00x", "0", "7", "01", "-1", "4294967295", "__proto__", "x".repeat(700), "\u00e9".repeat(20), "12345678", "/"];
    let made = "";
    for (let n = this.next(4); n >= 0; n--) made += pieces[this.next(pieces.length)];
    return this.next(4) === 0 ? made.slice(this.next(3)) : made;
  }
  number(): number {
    switch (this.next(12)) {
      case 0: return this.next(100);
      case 1: return -this.next(100000);
      case 2: return this.next(1e9) / 100;
      case 3: return -this.next(1e9) / 1000;
      case 4: return [0, -0, NaN, Infinity, -Infinity, 2 ** 31, -(2 ** 31), -(2 ** 31) - 1, 2 ** 32, 2 ** 53, 1e15, 999999999999999.9, 1e21, 1e-7, 0.001, 0.0009999, 5e-324, 1.7976931348623157e308][this.next(18)];
      case 5: return this.next(1 << 30) * 2 ** -this.next(60);
      case 6: return this.next(1 << 30) * 2 ** this.next(60);
      case 7: return this.next(1e9) / 7;
      case 8: return 0.1 + 0.2 * this.next(10);
      case 9: return this.next(1e9) * 1e6 + this.next(1e6) / 10;
      case 10: return (this.next(1e9) + this.next(1e6) / 1e6) / 10 ** this.next(8);
      default: return this.next(1e6) * 1e-6;
    }
  }
  value(depth: number, plain = false): any {
    const kind = this.next(depth > 0 ? 12 : 6);
    switch (kind) {
      case 0: return this.text();
      case 1: case 2: return this.number();
      case 3: return [true, false, null, null][this.next(4)];
      case 4: return plain ? this.text() : this.odd(depth);
      case 5: return undefined;
      case 6: case 7: case 8: return this.object(depth, plain);
      case 9: return Array.from({ length: this.next(5) }, () => ({ id: this.text(), n: this.number(), more: this.value(depth - 2, plain) }));
      default: return Array.from({ length: this.next(6) }, () => this.value(depth - 1, plain));
    }
  }
  object(depth: number, plain: boolean): any {
    const made: any = this.next(10) === 0 ? Object.create(null) : {};
    for (let n = this.next(6); n > 0; n--) {
      Object.defineProperty(made, this.next(3) === 0 ? this.text() : "name" + this.next(9), { value: this.value(depth - 1, plain), writable: true, enumerable: true, configurable: true });
    }
    if (this.next(6) === 0) delete made["name" + this.next(9)];
    if (plain) return made;
    if (this.next(20) === 0) made[Symbol("s")] = 1;
    if (this.next(20) === 0) Object.defineProperty(made, "hidden", { value: 1, configurable: true });
    if (this.next(20) === 0) {
      const got = this.next(9);
      Object.defineProperty(made, "got", { get: () => got, enumerable: true, configurable: true });
    }
    if (this.next(20) === 0) made.toJSON = () => "converted";
    if (this.next(20) === 0) made.toJSON = 5;
    if (this.next(20) === 0) made.self = made;
    if (this.next(10) === 0) Object.freeze(made);
    return made;
  }
  odd(depth: number): unknown {
    switch (this.next(27)) {
      case 0: return new Date([this.next(1e9), -this.next(1e9) * 1e6, this.next(1e9) * 8.6e6, 8.64e15, NaN][this.next(5)]);
      case 1: return new Map([[1, 2]]);
      case 2: return new Set([1]);
      case 3: return () => 1;
      case 4: return Symbol("x");
      case 5: return BigInt(this.next(9));
      case 6: return 2n ** 70n;
      case 7: return new Point(this.next(9), this.value(depth - 1));
      case 8: return new Money(this.next(900));
      case 9: return new Proxy({ a: 1 }, {});
      case 10: return new Proxy([1, 2], {});
      case 11: return Object("boxed");
      case 12: return Object(this.next(9));
      case 13: { const list: unknown[] = [1, 2, 3]; delete list[1]; return list; }
      case 14: return new Array(this.next(4));
      case 15: return Object.assign([1, 2], { more: 3 });
      case 16: return new Uint8Array([1, 2]);
      case 17: return Object.create({ inherited: 1 });
      case 18: return "ab".match(/(?<first>a)/);
      case 19: { const list = [1, 2, 3, 4]; list.length = 2; return list; }
      case 20: return class {};
      case 21: return Object.freeze([1, this.text()]);
      case 22: return Object.seal([this.number()]);
      case 23: { const list = [1]; list.length = 3; return list; }
      case 24: return new (class extends Array {})(1, 2);
      case 25: return (function (..._: unknown[]) { return arguments; })(1, 2);
      default: { const list: unknown[] = [this.text()]; list.push(list.length, { list: this.next(5) === 0 ? list : 0 }); return list; }
    }
  }
}
