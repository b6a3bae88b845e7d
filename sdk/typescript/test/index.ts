// What test files import from "@runner/test"; index.d.ts says it to editors.

export { clock, jobs } from "./app.ts";
export { as, call, request } from "./client.ts";
export { expect } from "./expect.ts";
export { outbound } from "./outbound.ts";
export { rows } from "./rows.ts";
export { afterAll, afterEach, beforeAll, beforeEach, describe, test, test as it } from "./run.ts";
