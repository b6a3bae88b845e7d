"""Answers."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Mapping
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any, Generic, Literal, Never, NoReturn, overload

from . import _handlers, _host, _values
from ._files import StoredFile
from ._query import Operation

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any, covariant=True)
else:
    from typing import TypeVar

    T = TypeVar("T")


class Response(Generic[T]):
    """An answer, made by one of the helpers. T is what it sends as JSON; an error sends none and is a Response[Never]."""

    __slots__ = ("status", "body", "headers", "message", "problem")
    _remedy = "is an answer: return it as it is"

    def __init__(self, status: int, body: Any = None, headers: list[tuple[str, str]] | None = None, message: str | None = None, problem: dict[str, Any] | None = None) -> None:
        self.status = status
        self.body = body
        self.headers = headers or []
        self.message = message
        self.problem = problem  # of an error with a code or members of its own

    def with_header(self, name: str, value: str) -> Response[T]:
        """The answer with one more header line."""
        return Response(self.status, self.body, [*self.headers, (name, value)], self.message, self.problem)


if TYPE_CHECKING:
    # What a handler returns to send a T.
    Answer = Response[T] | Operation[T] | T | Awaitable[Response[T] | Operation[T] | T]


class Abort(BaseException):
    """Ends a handler with an answer: see abort. It is not an Exception, so that "except Exception" in a web framework, or in
    the handler, does not make an error of it."""

    def __init__(self, response: Response[Any]) -> None:
        super().__init__(f"the handler answers {response.status}")
        self.response = response


class AnswerError(Exception):
    """An answer that the host has refused."""


# Whether the start of the app rehearses requests: the host then refuses all answers.
rehearsing = False


def _refused(status: str, what: str) -> None:
    if not rehearsing:
        raise AnswerError(f"{what}: {status}")


def abort(response: Response[Any]) -> NoReturn:
    """Ends the handler with an answer, from any depth of calls: abort(not_found("no such order")).

    "except Exception" does not catch it, and "finally" runs.
    """
    raise Abort(response)


@overload
def ok(body: Operation[T]) -> Response[T]: ...
@overload
def ok(body: T) -> Response[T]: ...
@overload
def ok() -> Response[None]: ...
def ok(body: Any = None) -> Response[Any]:
    """Answers 200. The body is sent as JSON, and bytes unchanged. A query is run, and its rows are not handed to the handler."""
    return Response(200, body)


@overload
def created(body: Operation[T], location: str | None = None) -> Response[T]: ...
@overload
def created(body: T, location: str | None = None) -> Response[T]: ...
@overload
def created(body: None = None, location: str | None = None) -> Response[None]: ...
def created(body: Any = None, location: str | None = None) -> Response[Any]:
    """Answers 201, with the Location of what was created if it is given."""
    return Response(201, body, [("location", location)] if location else None)


def text(body: str, status: int = 200) -> Response[Never]:
    """Answers with plain text."""
    return Response(status, body.encode(), [("content-type", "text/plain; charset=utf-8")])


def html(body: str, status: int = 200) -> Response[Never]:
    """Answers with a page. Escape the values that callers have sent."""
    return Response(status, body.encode(), [("content-type", "text/html; charset=utf-8")])


def no_content() -> Response[Never]:
    """Answers 204."""
    return Response(204, b"")


def redirect(location: str, status: Literal[301, 302, 303, 307, 308] = 302) -> Response[Never]:
    """Answers 302, or another redirect."""
    return Response(status, b"", [("location", location)])


def bad_request(message: str = "") -> Response[Never]:
    """Answers 400: the caller sent something invalid."""
    return error(400, message)


def unauthorized(message: str = "") -> Response[Never]:
    """Answers 401: the caller is not authenticated."""
    return error(401, message)


def forbidden(message: str = "") -> Response[Never]:
    """Answers 403: the caller may not do this."""
    return error(403, message)


def not_found(message: str = "") -> Response[Never]:
    """Answers 404."""
    return error(404, message)


def error(status: int, message: str = "", *, code: str = "", **members: Any) -> Response[Never]:
    """Answers any other failure, 400 to 599. A code in snake_case and members of your own are sent as RFC 9457 has them:
    error(402, "buy more", code="no_credit", balance=3)."""
    if not isinstance(message, str):
        raise TypeError(f"the message of an error of status {status} is text, and not a {type(message).__qualname__}: write str(…)")
    if code or members:
        return Response(status, message=message, problem={"status": status, "code": code, "detail": message, "members": members})
    return Response(status, message=message)


def set_header(name: str, value: str) -> None:
    status, _ = _host.message("response_header", data=f"{name}\n{value}".encode())
    if status != "ok":
        _refused(status, f"set header {name!r}")


def deliver(status: int, body: bytes) -> None:
    refused, _ = _host.message("response_send", status, data=body)
    if refused != "ok":
        _refused(refused, f"answer with status {status} and {len(body)} bytes")


def send_error(status: int, code: str, message: str) -> None:
    text = message.encode("utf-8", "replace")
    refused, _ = _host.message("response_error", status, data=code.encode() + b"\n" + text)
    if refused == "too_large":
        _refused(refused, f"answer with an error of status {status} and a message of {len(text)} bytes, of which 8 KiB are allowed")
    if refused != "ok":
        allowed = "" if 400 <= status <= 599 else " (it must be from 400 to 599)"
        _refused(refused, f"answer with an error of status {status}{allowed}")


class Gone(BrokenPipeError):
    """The client takes no more of an answer in parts."""


class Parts:
    """A body that is sent in parts, while the handler makes them."""

    def __init__(self, items: Iterable[Any] | AsyncIterable[Any], encode: Callable[[Any], bytes], at_once: bool) -> None:
        self.items = items
        self.encode = encode
        self.at_once = at_once  # the answer begins before the first part is made, else with it


def stream(
    parts: Iterable[str | bytes] | AsyncIterable[str | bytes], *, type: str = "text/plain; charset=utf-8", status: int = 200,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
) -> Response[Never]:
    """Answers in parts: each part is sent when the iterator has made it. The writes before are committed first, and each later
    operation is a transaction of its own. When the client is gone, the iterator is closed."""
    return in_parts(Parts(parts, _part, True), type, status, headers)


def in_parts(
    parts: Parts, type: str, status: int = 200, headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None
) -> Response[Never]:
    lines: list[tuple[str, str]] = list(headers.items() if isinstance(headers, Mapping) else headers or ())  # type: ignore[arg-type]
    if not any(name.lower() == "content-type" for name, _ in lines):
        lines.append(("content-type", type))
    return Response(status, parts, lines)


def _part(item: Any) -> bytes:
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item)
    raise TypeError(f"a part of the answer is a {type(item).__qualname__}: yield text or bytes, or answer with events(…)")


# Whether an answer in parts has begun. Then only an error can be sent, which cuts it off.
begun = False


def begin(status: int) -> None:
    """Commits what the request has written, and sends the head of an answer in parts."""
    global begun
    refused, _ = _host.message("response_begin", status)
    if refused != "ok":
        _refused(refused, f"answer in parts with status {status}")
    begun = True


# How many bytes a message has at most.
_MOST = 1 << 20


def write(part: bytes) -> None:
    """Sends a part of the answer, and waits for a slow client."""
    for at in range(0, len(part), _MOST):
        refused, _ = _host.message("response_write", data=part[at : at + _MOST])
        if refused == "unavailable":
            raise Gone("the client takes no more of the answer")
        if refused != "ok":
            _refused(refused, f"send a part of {len(part)} bytes")


def is_async(given: Any) -> bool:
    """Whether a handler has returned parts that an event loop must make."""
    body = given.body if isinstance(given, Response) else given
    return hasattr(body.items if isinstance(body, Parts) else body, "__aiter__")


def _begin(response: Response[Any]) -> None:
    for name, value in response.headers:
        set_header(name, value)
    begin(response.status)


def _send_parts(response: Response[Any], parts: Parts) -> None:
    if parts.at_once:
        _begin(response)
    items = iter(parts.items)  # type: ignore[arg-type]
    try:
        for item in items:
            part = parts.encode(item)
            if not begun:
                _begin(response)
            write(part)
        if not begun:
            _begin(response)
    except Gone:
        pass
    finally:
        if hasattr(items, "close"):
            items.close()  # type: ignore[union-attr]


async def _send_async(response: Response[Any], parts: Parts) -> None:
    if parts.at_once:
        _begin(response)
    items = parts.items.__aiter__()  # type: ignore[union-attr]
    try:
        async for item in items:
            part = parts.encode(item)
            if not begun:
                _begin(response)
            write(part)
        if not begun:
            _begin(response)
    except Gone:
        pass
    finally:
        if hasattr(items, "aclose"):
            await items.aclose()  # type: ignore[union-attr]


def send(given: Any, handler: Callable[..., Any] | None = None) -> Coroutine[Any, Any, None] | None:
    """Answers with what a handler returned, or returns the coroutine that does. Errors name the handler."""
    response = given if isinstance(given, Response) else _plain(given, handler)
    body = response.body
    # Before the headers: the answer to a body that cannot be sent, or to an operation that fails, must not have them.
    if isinstance(body, Operation):
        body._run()
    elif response.message is None and not isinstance(body, (bytes, bytearray, memoryview, SentFile)):
        if isinstance(body, (GeneratorType, AsyncGeneratorType)):
            response = in_parts(Parts(body, _part, False), "text/plain; charset=utf-8", response.status, response.headers)
            body = response.body
        if isinstance(body, Parts):
            return _send_async(response, body) if is_async(response) else _send_parts(response, body)
        body = b"" if body is None and (response.status == 204 or response.status >= 300) else _values.encode(body, lambda path, wrong: _unfit(handler, path, wrong))
    for name, value in response.headers:
        set_header(name, value)
    if response.problem is not None:
        _values.call("problem", response.problem)
    elif response.message is not None:
        send_error(response.status, "", response.message)
    elif isinstance(body, SentFile):
        _values.call("file.send", {**body.args, "status": response.status})
    elif isinstance(body, Operation):
        refused, _ = _host.message("response_send_result", response.status, body._part)
        if refused != "ok":
            _refused(refused, f"answer with status {response.status} and the last result")
    else:
        deliver(response.status, bytes(body))
    return None


class SentFile:
    """The body of an answer that is a file."""

    def __init__(self, args: dict[str, Any]) -> None:
        self.args = args


def send_file(
    file: StoredFile, *, status: int = 200, disposition: Literal["inline", "attachment"] | None = None, name: str | None = None,
    cache: str | None = None,
) -> Response[Never]:
    """Answers with a file, or the part of it that the request asks for. Its bytes do not come to the handler.

    What the handler has written is committed first. Without a disposition, a browser shows types that it does not run, such
    as pictures, and saves others. name replaces that of the file, cache is the Cache-Control of the answer.
    """
    given = {"id": file.id, "disposition": disposition, "name": name, "cache": cache}
    return Response(status, SentFile({key: value for key, value in given.items() if value is not None}))


def _plain(given: Any, handler: Callable[..., Any] | None) -> Response[Any]:
    if given is None:
        if (_host.text("request_path") or "").startswith("/_job/"):
            return no_content()  # a job has done its work
        raise TypeError(f"{_handlers.described(handler)} returned None: return ok(…), no_content() or another answer")
    if type(given) is tuple:
        raise TypeError(
            f"{_handlers.described(handler)} returned a tuple: return created(…), error(422, …) or another answer for a status, or a list"
        )
    return Response(200, given)


def _unfit(handler: Callable[..., Any] | None, path: list[str | int], wrong: str) -> Exception:
    whose = f" of {_handlers.described(handler)}" if handler else ""
    return TypeError(f"the answer{whose} cannot be sent: {_values.shown(['body', *path])} {wrong}")
