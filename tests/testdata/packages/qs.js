import qs from "qs";

export const run = () => [qs.parse("a[b][]=1&a[b][]=2&c=%20x"), qs.stringify({ a: { b: [1, 2] }, c: null })];
