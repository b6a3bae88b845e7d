// From a request to its answer.

import { response_error, response_header, response_send, response_send_result, errnoName } from "./abi";
import { reseed } from "./abort";
import { fail, failed, HostError, setCurrent, tryCall } from "./host";
import { encode, oddOf } from "./json";
import { Operation, Part } from "./query";
import { RouteRequest } from "./request";
import { Response } from "./response";

/** Runs a handler for the request at hand. The build makes an export of each handler that calls it. */
export function serve(name: string, handler: (req: RouteRequest) => Response): void {
  setCurrent(name);
  reseed();
  send(handler(new RouteRequest()));
  setCurrent("");
}

/** Runs a handler that uses the host's functions itself. */
export function bare(handler: () => void): void {
  reseed();
  handler();
}

function send(response: Response): void {
  const status = response.status;
  if (response.parts) return;
  for (let i = 0; i < response.names.length; i++) setHeader(response.names[i], response.values[i]);
  if (response.failure && (response.code.length > 0 || response.members.length > 0)) {
    const refused = tryCall("problem", response.problem()).error;
    if (refused !== null) failed("answer with an error of status " + status.toString() + ": " + refused.toString());
    return;
  }
  if (response.failure) {
    const message = String.UTF8.encode(response.text);
    accepted(response_error(status, 0, 0, changetype<usize>(message), message.byteLength), "answer with an error of status " + status.toString() + (status < 400 || status > 599 ? " (it must be from 400 to 599)" : ""));
    return;
  }
  if (response.file.length > 0) {
    const refused = tryCall("file.send", response.file).error;
    if (refused !== null) failed("answer with a file: " + refused.toString());
    return;
  }
  const operation = response.operation;
  if (operation !== null) {
    handOn(status, operation);
    return;
  }
  const bytes = response.bytes;
  if (bytes !== null) {
    sendBytes(status, bytes.dataStart, bytes.byteLength);
    return;
  }
  const odd = oddOf(response.text);
  if (odd !== null) failed("the answer's body" + (odd.place.length > 0 ? ": " + odd.place : "") + " is " + odd.what + ", which JSON does not have: check it first");
  const body = String.UTF8.encode(response.text);
  sendBytes(status, changetype<usize>(body), body.byteLength);
}

function sendBytes(status: i32, at: usize, length: i32): void {
  accepted(response_send(status, at, length), "answer with status " + status.toString() + " and " + length.toString() + " bytes");
}

/** Answers with an operation's result, without reading it where that can be. */
function handOn(status: i32, operation: Operation): void {
  operation.run();
  if (operation.part == Part.Count) {
    const count = String.UTF8.encode(operation.outcome.count.toString());
    sendBytes(status, changetype<usize>(count), count.byteLength);
    return;
  }
  const n = response_send_result(status, operation.part);
  if (n < 0 && errnoName(n) == "not_found") fail(new HostError("not_found", "no row matches the conditions"));
  accepted(n, "answer with status " + status.toString() + " and the last result");
}

/** Adds a header line to the answer. */
export function setHeader(name: string, value: string): void {
  const n = String.UTF8.encode(name);
  const v = String.UTF8.encode(value);
  accepted(response_header(changetype<usize>(n), n.byteLength, changetype<usize>(v), v.byteLength), "set header " + encode<string>(name));
}

/** A refused answer is an error of the handler, with any code. */
export function accepted(n: i32, act: string): void {
  if (n < 0) failed(act + ": " + errnoName(n));
}
