import equal from "fast-deep-equal";

export const run = () => [equal({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }), equal([1], [2])];
