import { match, P } from "ts-pattern";

export const run = () => match({ kind: "a", n: 3 }).with({ kind: "a", n: P.number.gt(2) }, ({ n }) => n).otherwise(() => 0);
