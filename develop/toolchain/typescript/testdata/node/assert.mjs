import assert, { strict, AssertionError } from "node:assert";
import strictModule from "assert/strict";

const fails = async (does) => {
  try {
    await does();
    return "passed";
  } catch (error) {
    return [error.name, error.code, error.operator, error.generatedMessage, error.generatedMessage ? "" : error.message];
  }
};
const all = (list) => Promise.all(list.map(fails));

export const cases = {
  passing: () => all([() => assert(1), () => assert.ok("a"), () => assert.equal(1, "1"), () => assert.strictEqual("a", "a"), () => assert.deepEqual({ a: 1 }, { a: "1" }), () => assert.deepStrictEqual([1, [2]], [1, [2]]), () => assert.notStrictEqual(1, "1"), () => assert.throws(() => { throw new TypeError("x y"); }, /x y/), () => assert.throws(() => { throw new TypeError("x"); }, TypeError), () => assert.throws(() => { throw Object.assign(new Error("m"), { code: 5 }); }, { message: "m", code: 5 }), () => assert.rejects(Promise.reject(new Error("r")), /r/), () => assert.doesNotThrow(() => {}), () => assert.match("abc", /b/), () => assert.ifError(null), () => strict.equal(1, 1), () => strictModule.deepEqual([1], [1])]),
  failing: () => all([() => assert(0, "said"), () => assert.equal(1, 2), () => assert.strictEqual(1, "1"), () => assert.deepEqual([1], [2]), () => assert.deepStrictEqual({ a: 1 }, { a: "1" }), () => assert.notEqual(1, 1), () => assert.throws(() => {}), () => assert.rejects(async () => 1), () => assert.fail("boom"), () => assert.fail(), () => assert.ifError(new Error("e")), () => strict.equal(1, "1"), () => assert.notDeepStrictEqual([1], [1]), () => assert.equal(1, 2, new RangeError("own"))]),
  other: () => fails(() => assert.throws(() => { throw new TypeError("x"); }, RangeError)),
  message: () => { try { assert.strictEqual(1, 2); } catch (error) { return [error.message, error instanceof AssertionError, error instanceof Error]; } },
  urls: () => all([() => assert.deepEqual(new URL("http://a/"), new URL("http://b/")), () => assert.deepEqual(new URL("http://a/"), new URL("http://a/"))]),
  generated: () => all([() => assert.throws(() => { throw new Error("x"); }, /y/), () => assert.throws(() => { throw new Error("x"); }, () => false), () => assert.match("a", /b/), () => assert(0)].map((does) => () => { try { does(); } catch (error) { throw Object.assign(error, { message: "" }); } })),
  acceptedByFunction: () => all([() => assert.doesNotThrow(() => { throw new Error("x"); }, () => true), () => assert.doesNotThrow(() => { throw new Error("x"); }, () => false), () => assert.throws(() => { throw new Error("x"); }, null)]),
  badArguments: () => all([() => assert.equal(1), () => assert.deepStrictEqual(), () => assert.throws(() => { throw new Error("x"); }, "x"), () => assert.throws(() => {}, 5), () => assert.throws(() => { throw new Error("x"); }, {}), () => assert.match("a", "a"), () => assert.doesNotThrow(() => { throw new Error("x"); }, {}), () => assert.rejects(5)].map((does) => async () => { try { await does(); } catch (error) { throw Object.assign(error, { generatedMessage: true }); } })),
};
