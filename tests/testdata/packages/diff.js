import { createPatch, diffWords } from "diff";

export const run = () => [diffWords("a b c", "a x c").map((d) => d.value), createPatch("f", "a\n", "b\n")];
