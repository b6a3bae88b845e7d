import merge from "deepmerge";

export const run = () => merge({ a: [1], b: { c: 1 } }, { a: [2], b: { d: 2 } });
