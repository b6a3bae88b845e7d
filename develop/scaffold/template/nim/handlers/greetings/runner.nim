## The functions of the runner that the handlers use. docs/abi/functions.md of the runner has all of them.
import std/json

{.emit: """/*INCLUDESECTION*/
#include <stdint.h>
#define RUNNER(type, name) __attribute__((import_module("runner"), import_name(#name))) extern type runner_##name
RUNNER(int32_t, request_param)(const char *name, int32_t length, void *buffer, int32_t size);
RUNNER(int32_t, request_query)(const char *name, int32_t length, void *buffer, int32_t size);
RUNNER(int32_t, request_body)(int32_t offset, void *buffer, int32_t size);
RUNNER(int32_t, call)(const char *operation, int32_t length, const char *arguments, int32_t size);
RUNNER(int32_t, call_result)(int32_t offset, void *buffer, int32_t size);
RUNNER(int32_t, response_send)(int32_t status, const char *body, int32_t length);
RUNNER(int32_t, response_error)(int32_t status, const char *code, int32_t size, const char *message, int32_t length);
RUNNER(void, log)(int32_t level, const char *text, int32_t length);
""".}
proc requestParam(name: cstring, length: int32, buffer: pointer, size: int32): int32 {.importc: "runner_request_param", nodecl.}
proc requestQuery(name: cstring, length: int32, buffer: pointer, size: int32): int32 {.importc: "runner_request_query", nodecl.}
proc requestBody(offset: int32, buffer: pointer, size: int32): int32 {.importc: "runner_request_body", nodecl.}
proc hostCall(op: cstring, length: int32, args: cstring, size: int32): int32 {.importc: "runner_call", nodecl.}
proc hostResult(offset: int32, buffer: pointer, size: int32): int32 {.importc: "runner_call_result", nodecl.}
proc responseSend(status: int32, body: cstring, length: int32): int32 {.importc: "runner_response_send", nodecl, discardable.}
proc responseError(status: int32, code: cstring, size: int32, message: cstring, length: int32): int32 {.importc: "runner_response_error", nodecl, discardable.}
proc hostLog(level: int32, text: cstring, length: int32) {.importc: "runner_log", nodecl.}

type HostError* = object of CatchableError
  ## An operation that failed. Its code is one of docs/abi/functions.md.
  code*: string

proc text(read: proc (buffer: pointer, size: int32): int32): string =
  result = newString(256)
  let n = read(addr result[0], 256)
  if n < 0: return ""
  result.setLen(n)
  if n > 256: discard read(addr result[0], n)

proc param*(name: string): string =
  text(proc (buffer: pointer, size: int32): int32 = requestParam(name.cstring, name.len.int32, buffer, size))

proc query*(name: string): string =
  text(proc (buffer: pointer, size: int32): int32 = requestQuery(name.cstring, name.len.int32, buffer, size))

proc body*(): JsonNode =
  parseJson(text(proc (buffer: pointer, size: int32): int32 = requestBody(0, buffer, size)))

proc operation*(name: string, arguments: JsonNode): JsonNode =
  ## Runs an operation of docs/abi/operations.md.
  let sent = $arguments
  let n = hostCall(name.cstring, name.len.int32, sent.cstring, sent.len.int32)
  let got = text(proc (buffer: pointer, size: int32): int32 = hostResult(0, buffer, size))
  result = parseJson(got)
  if n < 0: raise (ref HostError)(code: result["code"].getStr, msg: result["message"].getStr)

proc log*(message: string) = hostLog(1, message.cstring, message.len.int32)

proc answer*(status: int, body: JsonNode) =
  let sent = $body
  responseSend(status.int32, sent.cstring, sent.len.int32)

proc refuse*(status: int, message: string, code = "") =
  responseError(status.int32, code.cstring, code.len.int32, message.cstring, message.len.int32)

proc NimMain() {.importc.}

proc initialize() {.exportc: "runner_initialize", codegenDecl: "__attribute__((export_name(\"runner_warm\"))) $# $#$#".} =
  NimMain()

proc fail(e: ref Exception) =
  let code = if e of (ref HostError): ((ref HostError)e).code else: ""
  case code
  of "not_found": refuse(404, e.msg)
  of "denied": refuse(403, e.msg)
  of "conflict": refuse(409, e.msg)
  else:
    let why = "error\n" & e.msg
    hostLog(4, why.cstring, why.len.int32)
    refuse(500, "", "handler_failed")

proc serve*(handler: proc ()) =
  try: handler()
  except CatchableError: fail(getCurrentException())

template handler*(name, code: untyped) =
  ## Exports a handler with the name that the schema gives it.
  proc name() {.exportc, codegenDecl: "__attribute__((export_name(\"" & astToStr(name) & "\"))) $# $#$#".} =
    serve(proc () = code)
