import { ok } from "@runner/sdk";

// The build warns of it: a draw of the module's initialization.
export const early = Math.random();

export const drawTypeScript = () =>
  ok({
    "Math.random": `${Math.random()} ${Math.random()}`,
    getRandomValues: crypto.getRandomValues(new BigUint64Array(1)).join(),
    randomUUID: crypto.randomUUID(),
  });
