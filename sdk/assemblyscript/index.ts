/**
 * The SDK for handlers written in AssemblyScript: see README.md.
 *
 * A handler is an exported function over the request that returns an answer made by
 * one of the helpers, named as in the schema (`POST /orders -> createOrder`).
 */
export { JSON } from "json-as";
export { abort, seed, trace } from "./assembly/abort";
export { console } from "./assembly/console";
export { Context, Client, ApiKeys, ApiKey, ApiKeyPage, ApiKeyOptions, ApiKeyFilter, Auth, getContext } from "./assembly/context";
export { Digest, digest, hmac, hmacWithKey, now, randomBytes, randomUUID, timingSafeEqual } from "./assembly/crypto";
export { Fetch, FetchResponse, fetch, fetchAll } from "./assembly/fetch";
export { FileWriter, FormField, SendOptions, StoredFile, UploadedFile, UploadedForm, createFile, sendFile } from "./assembly/files";
export { call, fail, tryCall, HostError, Outcome } from "./assembly/host";
export { EnqueuedJob, Job, JobOptions, Jobs } from "./assembly/jobs";
export { Fields, fields, nil, parseJSON } from "./assembly/json";
export { PasswordCheck, hashPassword, verifyPassword } from "./assembly/password";
export {
  Aggregation, Change, Condition, Insertion, Lookup, Operation, Page, Removal, Selection,
  aggregate, and, field, get, insert, not, or, query, remove, select, update,
} from "./assembly/query";
export { RouteRequest, Values, ValueLists } from "./assembly/request";
export {
  Response, badRequest, created, error, forbidden, noContent, notFound, ok, redirect, unauthorized,
} from "./assembly/response";
export { LiveSession, Session, SessionFilter, SessionOptions, SessionPage, Sessions } from "./assembly/sessions";
export { Event, Stream, events, stream } from "./assembly/stream";
export { Delivery, Webhooks } from "./assembly/webhooks";
export { bare, serve } from "./assembly/serve";
