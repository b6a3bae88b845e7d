"""Messages to the host through the file /runner/host."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, ClassVar, Literal

ErrorCode = Literal["not_found", "invalid", "denied", "conflict", "too_large", "limit", "unavailable", "deadline", "internal"]

_file = -1

# Whether the program starts: there is no request, and the host denies what belongs to one.
starting = False


def _open() -> int:
    global _file
    try:
        _file = os.open("/runner/host", os.O_RDWR)
    except OSError:
        raise RuntimeError("this needs the runner: it works in a handler that the runner has started") from None
    return _file


class HostError(Exception):
    """A failed operation. `op` is its name, such as "query". For an operation on rows, `entity` and `field` say what the error is about."""

    last: ClassVar[HostError | None] = None  # of this request

    def __init__(self, code: str, message: str = "", op: str | None = None, entity: str | None = None, field: str | None = None) -> None:
        HostError.last = self
        super().__init__(f"{code}: {message}" if message else code)
        self.code: ErrorCode = code  # type: ignore[assignment]
        self.message = message
        self.op = op
        self.entity = entity
        self.field = field  # those of @@unique are separated by commas


HostError.__module__ = "runner"  # its name in tracebacks


def message(name: str, *numbers: int, data: bytes = b"") -> tuple[str, bytes]:
    """Calls a function of the host, and returns "ok" or an errno, and the answer."""
    head = f"{name} {' '.join(map(str, numbers))} {len(data)}\n" if numbers else f"{name} {len(data)}\n"
    file = _file if _file >= 0 else _open()
    rest = head.encode() + data
    try:
        written = os.write(file, rest)
        while written < len(rest):
            rest = rest[written:]
            written = os.write(file, rest)
        answer = os.read(file, 65536)
        end = answer.find(b"\n")
        while end < 0:
            answer += os.read(file, 65536)
            end = answer.find(b"\n")
        status, length = answer[:end].split()
        end += 1
        missing = int(length) - (len(answer) - end)
        if missing > 0:
            parts = [answer[end:]]
            while missing > 0:
                part = os.read(file, missing)
                parts.append(part)
                missing -= len(part)
            return status.decode(), b"".join(parts)
        return status.decode(), answer[end:]
    except MemoryError:
        os.abort()  # the next message would get what is left of this answer. The host knows that it refused memory


def text(name: str, *numbers: int, data: str = "") -> str | None:
    """The text that a function writes; None if what it names does not exist."""
    status, answer = message(name, *numbers, data=data.encode())
    if status == "not_found":
        return None
    if status != "ok":
        raise refusal(status, name)
    return answer.decode()


def refusal(status: str, name: str) -> HostError:
    """The error of a function that is not an operation."""
    if starting and status == "denied":
        return _early(name, None)
    return HostError(status, f"{name}: the request has used its budget of host calls or of moved bytes" if status == "limit" else f"{name}: {status}")


def _early(name: str, op: str | None) -> HostError:
    """The error of what a program uses before its first request, with the place in the app's own files."""
    frame, place = sys._getframe(), ""
    while frame is not None and not place:
        file = frame.f_code.co_filename.removeprefix("/app/")
        place = f" ({file}:{frame.f_lineno})" if file.startswith("handlers/") else ""
        frame = frame.f_back  # type: ignore[assignment]
    return HostError("denied", f"{name} is not available while the program starts, at module level or in @warm: call it in the handler{place}", op)


def failure(op: str, status: str, answer: bytes) -> HostError:
    """The error of an operation that failed with status and the JSON of its error."""
    if starting and status == "denied":
        return _early(op, op)
    try:
        error = json.loads(answer)
        return HostError(error["code"], error["message"], op, error.get("entity"), error.get("field"))
    except (ValueError, KeyError, TypeError):
        return HostError(status, "", op)


def operate(op: str, args: bytes) -> bytes:
    """Runs an operation with arguments in JSON, and returns the JSON of its result."""
    status, answer = message(op, data=args)
    if status != "ok":
        raise failure(op, status, answer)
    return answer


# Levels of log.
DEBUG, INFO, WARN, ERROR, REPORT = range(5)


def log(level: int, line: str) -> None:
    message("log", level, data=line.encode("utf-8", "backslashreplace"))


def start(op: str, args: bytes) -> int:
    """Starts an operation, and returns its ticket."""
    status, answer = message("call_start", data=op.encode() + b"\n" + args)
    if status != "ok":
        raise failure(op, status, answer)
    return int(answer)


def wait() -> int:
    """Waits until a started operation is completed, and returns its ticket."""
    status, answer = message("call_wait")
    if status != "ok":
        raise refusal(status, "call_wait")
    return int(answer)


def take(ticket: int, op: str) -> Any:
    """The result of a started operation."""
    status, answer = message("call_take", ticket)
    if status != "ok":
        raise failure(op, status, answer)
    return json.loads(answer)
