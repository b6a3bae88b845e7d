"""From the start of the program to the answer of a request."""

from __future__ import annotations

import gc
import importlib
import os
import re
import sys
from types import CoroutineType, FunctionType, TracebackType
from typing import Any, Callable, NoReturn

from . import _handlers, _host, _log, _query, _request, _response, _standard, _values, _web
from ._request import BodyError, Request

APP = "/app/"


# A start makes many objects and little garbage: collections would only cost time.
_RARE = (100_000, 10, 10)


def main() -> None:
    """Starts the app, and serves its requests."""
    usual = gc.get_threshold()
    gc.set_threshold(*_RARE)
    # The directory of this program is the first: files of the app must not hide those of packages.
    sys.path[:] = [APP + "handlers", APP + "packages", *[path for path in sys.path if path not in ("", "/app")], "/app"]
    _standard.install()
    _log.install()
    _host.starting = True
    try:
        handlers = _load()
    except SystemExit as end:
        _host.log(_host.ERROR, f"the app calls sys.exit({end.code!r}) in its start")
        os._exit(1)
    except BaseException as error:
        _host.log(_host.REPORT, report(error))
        import traceback

        traceback.print_exception(error)
        sys.stderr.flush()
        os._exit(1)
    _host.starting = False
    functions = list(handlers.values())
    names = "\n".join(handlers).encode()
    _standard.end_start()
    _rehearse(any(_is_async(f) or isinstance(f, _web.ASGI) for f in functions))
    if gc.get_threshold() == _RARE:  # the app has not set another one
        gc.set_threshold(*usual)
    gc.collect()
    gc.freeze()  # a collection in a request must not write to the objects of the start
    while True:
        status, index = _host.message("request_next", data=names)
        if status != "ok":
            raise SystemExit(f"request_next: {status}")
        _standard.begin()
        _serve(functions[int(index)])
        _end()


def _rehearse(waits: bool) -> None:
    """Runs the way of a request a few times. CPython adapts bytecode to what it has seen, and writes to it and to its caches:
    a request finds that done. The host refuses all that is for a request."""

    def attempt(read: Callable[[], Any]) -> None:
        try:
            read()
        except _host.HostError:
            pass

    def give(_: Request[Any]) -> Any:
        return _response.ok({"text": "a", "number": 1, "list": [None, True, 1.5]})

    def refuse(_: Request[Any]) -> Any:
        _response.abort(_response.not_found("nothing"))

    def fail(_: Request[Any]) -> Any:
        raise _host.HostError("not_found", "nothing", "query")

    pair = b"\1\0\0\0\1\0\0\0ab"
    _response.rehearsing = True
    for _ in range(4):
        _standard.begin()
        request: Request[Any] = Request()
        for read in (
            lambda: request.method, lambda: request.path, lambda: request.params, lambda: request.query, lambda: request.headers,
            lambda: request.body, lambda: _query.query("X").where("a", "=", 1).order_by("a").limit(1).rows(),
            lambda: _query.get("X", "y").row(), lambda: _query.insert("X", {"a": 1}),
        ):
            attempt(read)
        _request._read_pairs(pair * 3)
        request.__dict__["body"] = b'{"a": [1, "x"]}'
        request.json()
        for function in (give, refuse, fail):
            _serve(function)
            _end()
        if waits:
            _web.run(_nothing())
        try:
            raise ValueError("rehearsed")
        except ValueError as error:
            report(error)
    _response.rehearsing = False
    _standard.begin()


def _load() -> dict[str, Callable[..., Any]]:
    """Imports the app's files, and returns its handlers."""
    stems = _modules(APP + "handlers")
    for stem in stems:
        importlib.import_module(stem)
    for module in stems:
        for name, value in vars(sys.modules[module]).items():
            if isinstance(value, _web.Application) and value not in _handlers.functions.values():
                _handlers._add(name, value)
    handlers = _handlers.named(_values.schema.get("handlers", []))
    if not handlers:
        known = _values.schema.get("handlers", [])
        for module in stems:
            for name, value in vars(sys.modules[module]).items():
                if isinstance(value, FunctionType) and value.__module__ == module and (name in known or _handlers.camel(name) in known):
                    raise ImportError(f"{_handlers._place(value)}: {name} has no @handler: add it above the function")
        raise ImportError("no file in handlers/ has a handler: write @handler above a function, or shop = wsgi(app)")
    for function in _handlers.warm_ups:
        result = function()
        if isinstance(result, CoroutineType):
            _web.run(result)
    for function in handlers.values():
        if isinstance(function, _web.Application):
            function.start()
        elif _is_async(function):
            _web.run(_nothing())  # the event loop is made
    return handlers


def _modules(directory: str) -> list[str]:
    """The names of the modules in the directory handlers, without those in packages. One that could not be imported is refused."""
    names = sorted(os.listdir(directory))
    packages = [name for name in names if os.path.exists(f"{directory}/{name}/__init__.py")]
    files = [name for name in names if name.endswith(".py")]
    for name in packages + files:
        stem = name.removesuffix(".py")
        if stem in sys.stdlib_module_names or stem in ("runner", "__main__"):
            whose = "of Python" if stem != "runner" else ""
            raise ImportError(f"handlers/{name} hides the module {stem} {whose}".rstrip() + ": rename it")
        if name in files and stem in packages:
            raise ImportError(f"handlers/{stem}/ hides handlers/{name}: rename one of them")
        if name in files and "." in stem:
            raise ImportError(f"handlers/{name} is not the name of a module: remove the dots before .py")
    return [name[:-3] for name in files]


def _is_async(function: Callable[..., Any]) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and code.co_flags & 0x280 != 0  # CO_COROUTINE and CO_ASYNC_GENERATOR of the module inspect


async def _nothing() -> None:
    pass


def _serve(function: Callable[..., Any]) -> None:
    """Runs a handler for the request at hand, and answers."""
    try:
        given = function() if getattr(function, "_runner_plain", False) else function(Request())
        if isinstance(given, CoroutineType):
            given = _web.run(_awaited(given))
        if given is not _web.ANSWERED:
            _send(given, function)
    except BaseException as error:
        _query.waiting.clear()
        answer = answer_to(error)
        if answer is None:
            _fail(error)
            return
        try:
            answer()
        except BaseException as failure:
            _fail(failure)


def _send(given: Any, function: Callable[..., Any] | None = None) -> None:
    later = _response.send(given, function)
    if later is not None:
        _web.run(later)


async def _awaited(coroutine: CoroutineType[Any, Any, Any]) -> Any:
    """What a handler answers. The tasks that it leaves go on while it sends parts."""
    given = await coroutine
    if _response.is_async(given):
        later = _response.send(given)
        if later is not None:
            await later
            return _web.ANSWERED
    return given


# The answer to an error of an operation on rows or keys that the handler did not catch: it
# depends on what the caller may do. Any other error is 500, and only the log has it.
_ANSWERS = {"not_found": (404, "not_found"), "denied": (403, "forbidden"), "conflict": (409, "conflict"), "unavailable": (503, "unavailable")}


def _of_caller(op: str) -> bool:
    return op in ("query", "get", "count", "aggregate", "insert", "update", "delete", "webhooks.verify") or op.startswith(
        ("apiKeys.", "sessions.", "jobs.")
    )


def answer_to(error: BaseException) -> Callable[[], None] | None:
    """What answers an error that was not caught; None: the handler has failed."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:  # of asyncio.TaskGroup
        error = error.exceptions[0]
    if isinstance(error, _response.Abort):
        response = error.response
        return lambda: _send(response)
    if isinstance(error, BodyError):
        status, code, message = 400, error.code, str(error)
    elif isinstance(error, _host.HostError) and error.code in _ANSWERS and (error.op is None or _of_caller(error.op)):
        (status, code), message = _ANSWERS[error.code], error.message
    else:
        return None
    return lambda: _response.send_error(status, code, message)


def _fail(error: BaseException) -> None:
    """Answers 500 and reports why."""
    if isinstance(error, MemoryError):
        _fail_without_memory(error)
    _host.log(_host.REPORT, report(error))
    try:
        _response.send_error(500, "handler_failed", "")
    except _response.AnswerError:
        os._exit(1)  # another answer is sent already: the request fails


def _fail_without_memory(error: MemoryError) -> NoReturn:
    """Ends the request. The host knows that it was refused memory, and answers."""
    text = "exception\nMemoryError"
    try:
        frames = _frames(error.__traceback__)
        _clear(error.__traceback__)  # what fills the memory is in their variables
        text = "\n".join([text, *frames])
    except MemoryError:
        pass
    try:
        _host.log(_host.REPORT, text)
    finally:
        os.abort()


def _clear(trace: TracebackType | None) -> None:
    while trace is not None:
        try:
            trace.tb_frame.clear()
        except RuntimeError:
            pass  # it runs
        trace = trace.tb_next


def _end() -> None:
    """Ends a request: what the handler has forgotten goes to the log."""
    for change in list(_query.waiting.values())[:3]:
        _host.log(_host.WARN, f"{change} was made and never run, so nothing was written: add .run()")
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()  # type: ignore[union-attr]
        except Exception:
            pass  # the handler has closed it, or put another object in its place


def report(error: BaseException) -> str:
    """A failure as the runner logs it: its kind, its message with its causes, and its frames, innermost first."""
    lines = ["exception", _title(error)]
    seen = {id(error)}
    cause: BaseException | None = error
    while cause is not None and len(lines) < 30:
        raised = cause.__cause__
        word = "caused by"
        if raised is None and not cause.__suppress_context__:
            raised, word = cause.__context__, "while handling"
        cause = None if raised is None or id(raised) in seen else raised
        if cause is not None:
            seen.add(id(cause))
            at = next(iter(_frames(cause.__traceback__)), "")
            lines.append(f"{word} {_title(cause)}{at.replace('    at ', ' at ')}")
    if isinstance(error, BaseExceptionGroup):
        lines += [f"  {_title(inner)}" for inner in error.exceptions[:5]]
    return "\n".join(["\n".join(lines)[:_MOST], *_frames(error.__traceback__)])


# The beginning of a line that the host takes for a frame.
_FRAME = re.compile("\n(?= *at )")


# How long a message is at most. The host reads a part of a report, in which the frames must be, and keeps less.
_MOST = 4200


def _of_machine_code(error: ImportError) -> str:
    """What to append to an error about a module of machine code that the build has left out."""
    import json

    try:
        with open(APP + "machine_code.json", encoding="utf-8") as file:
            package = json.load(file).get(f"{error.name}.{error.name_from}" if error.name_from else error.name)
    except OSError:
        return ""
    return f": it is machine code of the package {package}, which a sandbox cannot run: use a package of Python alone" if package else ""


def _title(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:
        text = "its text cannot be made"
    if isinstance(error, ImportError):
        text += _of_machine_code(error)
    name = type(error).__qualname__
    if type(error).__module__ not in ("builtins", "__main__"):
        name = f"{type(error).__module__}.{name}"
    if isinstance(error, SyntaxError) and error.filename:
        text = f"{error.msg} ({error.filename.removeprefix(APP)}:{error.lineno}:{error.offset})"
    return _FRAME.sub("\n| ", f"{name}: {text[:_MOST]}" if text else name)


# The directory of Python's library, also of another build, whose bytecode has the place where it was built.
_LIBRARY = re.compile("/.*/(?:lib/python3[.][0-9]+|Lib)/")


def _file(name: str) -> str:
    """The name of a file as its author knows it."""
    library = _LIBRARY.match(name)
    return f"python/{name[library.end():]}" if library else name.removeprefix(APP)


# Files whose frames are not shown.
_HIDDEN = (APP + "runner/", APP + "__main__", "<frozen")


def _frames(trace: TracebackType | None) -> list[str]:
    traces: list[TracebackType] = []
    omitted = False
    while trace is not None:
        traces.append(trace)
        if len(traces) > 2000:  # of a deep recursion, which may have a hundred thousand
            del traces[500:-500]
            omitted = True
        trace = trace.tb_next
    traces = [t for t in traces if not t.tb_frame.f_code.co_filename.startswith(_HIDDEN)]
    if len(traces) > 60:
        del traces[20:-30]
        omitted = True
    frames = [_frame(t) for t in traces]
    if omitted:
        frames[20:-30] = ["    at … (…)"]
    return frames[::-1]


def _frame(trace: TracebackType) -> str:
    code = trace.tb_frame.f_code
    positions = next((p for i, p in enumerate(code.co_positions()) if i == trace.tb_lasti // 2), None)
    column = f":{positions[2] + 1}" if positions and positions[2] is not None else ""
    return f"    at {code.co_qualname} ({_file(code.co_filename)}:{trace.tb_lineno}{column})"
