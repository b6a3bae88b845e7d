import { parse, stringify } from "smol-toml";

export const run = () => [parse("a = 1\n[b]\nc = ['x', 'y']\n"), stringify({ a: { b: true } })];
