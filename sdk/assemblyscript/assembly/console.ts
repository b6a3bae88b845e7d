// console in the server's log. The build names it with --use.

import { writeLog } from "./host";

/** Lines in the server's log, under the request's id. Bounded in number and size for each request. */
export namespace console {
  export function assert<T>(condition: T, message: string = ""): void {
    if (!condition) writeLog(3, "assertion failed: " + message);
  }
  export function debug(message: string = ""): void {
    writeLog(0, message);
  }
  export function log(message: string = ""): void {
    writeLog(1, message);
  }
  export function info(message: string = ""): void {
    writeLog(1, message);
  }
  export function warn(message: string = ""): void {
    writeLog(2, message);
  }
  export function error(message: string = ""): void {
    writeLog(3, message);
  }
}
