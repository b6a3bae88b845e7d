// The globals of Node.js, for the modules that name them.

export { Buffer } from "./buffer.ts";
export { process } from "./process.ts";
