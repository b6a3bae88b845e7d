import Ajv from "ajv";

export function run() {
  const check = new Ajv({ allErrors: true }).compile({ type: "object", required: ["a"], properties: { b: { type: "integer", minimum: 3 } } });
  return [check({ a: 1, b: 4 }), check({ b: 1 }), check.errors.map((e) => e.message)];
}
