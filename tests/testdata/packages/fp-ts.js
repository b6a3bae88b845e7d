import * as O from "fp-ts/lib/Option.js";
import { pipe } from "fp-ts/lib/function.js";

export const run = () => pipe(O.some(2), O.map((n) => n * 3), O.getOrElse(() => 0));
