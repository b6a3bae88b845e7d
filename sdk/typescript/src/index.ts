// What handlers import from "@runner/sdk"; index.d.ts says it to editors.

export { call } from "./call.ts";
export { getContext } from "./context.ts";
export { file, sign } from "./files.ts";
export { hmac, timingSafeEqual } from "./hmac.ts";
export { HostError } from "./host.ts";
export { jobs } from "./jobs.ts";
export { password } from "./password.ts";
export { aggregate, and, field, get, insert, not, or, query, remove, select, update } from "./query.ts";
export { BodyError } from "./request.ts";
export { badRequest, created, error, events, forbidden, html, noContent, notFound, ok, redirect, stream, text, unauthorized } from "./response.ts";
export { vars } from "./vars.ts";
export { fetchHandler } from "./fetchhandler.ts";
