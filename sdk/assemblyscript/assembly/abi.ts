// Code generated from hostabi/abi by go generate; DO NOT EDIT.

@external("runner", "request_method")
export declare function request_method(buf: usize, capacity: i32): i32;

@external("runner", "request_path")
export declare function request_path(buf: usize, capacity: i32): i32;

@external("runner", "request_param")
export declare function request_param(name: usize, nameLength: i32, buf: usize, capacity: i32): i32;

@external("runner", "request_query")
export declare function request_query(name: usize, nameLength: i32, buf: usize, capacity: i32): i32;

@external("runner", "request_header")
export declare function request_header(name: usize, nameLength: i32, buf: usize, capacity: i32): i32;

@external("runner", "request_pairs")
export declare function request_pairs(kind: i32, buf: usize, capacity: i32): i32;

@external("runner", "request_body")
export declare function request_body(offset: i32, buf: usize, capacity: i32): i32;

@external("runner", "request_read")
export declare function request_read(buf: usize, capacity: i32): i32;

@external("runner", "context")
export declare function context(buf: usize, capacity: i32): i32;

@external("runner", "response_header")
export declare function response_header(name: usize, nameLength: i32, value: usize, valueLength: i32): i32;

@external("runner", "response_send")
export declare function response_send(status: i32, body: usize, bodyLength: i32): i32;

@external("runner", "response_error")
export declare function response_error(status: i32, code: usize, codeLength: i32, message: usize, messageLength: i32): i32;

@external("runner", "response_send_result")
export declare function response_send_result(status: i32, part: i32): i32;

@external("runner", "response_begin")
export declare function response_begin(status: i32): i32;

@external("runner", "response_write")
export declare function response_write(body: usize, bodyLength: i32): i32;

@external("runner", "call")
export declare function call(op: usize, opLength: i32, args: usize, argsLength: i32): i32;

@external("runner", "call_result")
export declare function call_result(offset: i32, buf: usize, capacity: i32): i32;

@external("runner", "call_start")
export declare function call_start(op: usize, opLength: i32, args: usize, argsLength: i32): i32;

@external("runner", "call_wait")
export declare function call_wait(): i32;

@external("runner", "call_take")
export declare function call_take(ticket: i32): i32;

@external("runner", "request_next")
export declare function request_next(handlers: usize, handlersLength: i32): i32;

@external("runner", "keep_writes")
export declare function keep_writes(): void;

@external("runner", "log")
export declare function log(level: i32, text: usize, textLength: i32): void;

/** The name of a failed host call's number; one that this SDK does not know is internal. */
export function errnoName(n: i32): string {
  switch (n) {
    case -1: return "not_found";
    case -2: return "invalid";
    case -3: return "denied";
    case -4: return "conflict";
    case -5: return "too_large";
    case -6: return "limit";
    case -7: return "unavailable";
    case -8: return "deadline";
  }
  return "internal";
}
