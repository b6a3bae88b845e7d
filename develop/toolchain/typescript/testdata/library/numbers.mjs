// Operators of generated values.

import { Random, number, outcome, value } from "./values.mjs";

const operators = [
  (a, b) => a % b, (a, b) => a & b, (a, b) => a | b, (a, b) => a ^ b, (a, b) => a << b, (a, b) => a >> b, (a, b) => a >>> b,
  (a, b) => a + b, (a, b) => a - b, (a, b) => a * b, (a, b) => a / b, (a) => ~a, (a) => -a,
  // The engine compares BigInts with fractions inexactly.
  (a, b) => (typeof a === "bigint" || typeof b === "bigint" ? 0 : a < b), (a, b) => (typeof a === "bigint" || typeof b === "bigint" ? 0 : a == b),
];

/** The results of all operators for the values of a seed. */
export function result(seed) {
  const random = new Random(seed), log = [];
  const numeric = random.chance(2);
  const a = numeric ? number(random) : value(random, log), b = numeric ? number(random) : value(random, log);
  return operators.map((operator) => {
    log.length = 0;
    return outcome(() => operator(a, b), log);
  }).join(" ");
}
