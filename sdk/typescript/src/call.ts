// Operations without a function of their own.

import { Mark, type Operation, Whole } from "./host.ts";

export const call = (op: string, args: object = {}): Operation<any> => new Whole(op, args, undefined, new Mark(op));
