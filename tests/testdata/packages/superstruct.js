import { number, object, string, validate } from "superstruct";

export const run = () => validate({ a: 1 }, object({ a: string(), b: number() }))[0].failures().map((f) => f.message);
