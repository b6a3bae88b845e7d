"""Applications of web frameworks: WSGI (PEP 3333) and ASGI 3."""

from __future__ import annotations

import io
import sys
from typing import Any, Callable

from . import _context, _handlers, _host, _response
from ._request import Request, _pairs, read_part

#: What a handler returns that has answered.
ANSWERED = object()

# Headers that only the host sets.
_HOSTS = {
    "connection", "transfer-encoding", "content-length", "date", "server", "trailer", "upgrade", "te", "keep-alive", "x-request-id",
}

# Statuses of answers without a body.
_BODILESS = (204, 205, 304)


class Application:
    """An application of a framework, as a handler."""

    _runner_plain = True

    def __init__(self) -> None:
        import urllib.parse  # in the start, for each request

    def start(self) -> None:
        """Prepares the application, before the first request."""

    def __call__(self) -> Any:
        raise NotImplementedError


def _split(request: Request) -> tuple[str, bytes]:
    """The path up to the first parameter of the route, and the rest, decoded."""
    from urllib.parse import unquote_to_bytes

    prefix = ""
    for segment in _context.context().route.split("/")[1:]:
        if segment.startswith((":", "*")):
            break
        prefix += "/" + segment
    path = request.path
    if not path.startswith(prefix):
        prefix = ""
    return prefix, unquote_to_bytes(path[len(prefix) :])


def _origin(headers: list[tuple[str, str]]) -> tuple[str, str, str]:
    """The scheme, the name and the port that the client has used."""
    scheme = _context.context().scheme
    host = next((value for name, value in headers if name == "host"), "localhost")
    name, colon, port = host.rpartition(":")
    return (scheme, name, port) if colon and port.isdigit() else (scheme, host, "443" if scheme == "https" else "80")


# That of the requests of the start.
_START = ("http", "localhost", "80")


def _raise_refusal() -> None:
    """Raises the last error of an operation again if the framework has caught it, and a handler's answer to it is not 500."""
    from ._serve import APP, answer_to

    error = _host.HostError.last
    if error is None or error.__traceback__ is None or answer_to(error) is None:
        return
    caught_in = error.__traceback__.tb_frame.f_code.co_filename  # a traceback begins with the function that has caught it
    if caught_in.startswith(APP + "packages/"):
        raise error


def _is_in_parts(status: int, headers: list[tuple[str, str]]) -> bool:
    """Whether an answer, whose application makes it in parts, is sent in parts."""
    return not _host.starting and status not in _BODILESS and not any(name.lower() == "content-length" for name, _ in headers)


def _begin(status: int, headers: list[tuple[str, str]]) -> None:
    """Begins an answer in parts."""
    _set_headers(status, headers)
    _response.begin(status)


def _send(status: int, headers: list[tuple[str, str]], body: bytes) -> None:
    typed = _set_headers(status, headers)
    if body and not typed:
        _response.set_header("content-type", "application/octet-stream")
    _response.deliver(status, b"" if status in _BODILESS else body)


def _set_headers(status: int, headers: list[tuple[str, str]]) -> bool:
    """Sets the headers, and returns whether there is a content-type."""
    if status == 500:
        _raise_refusal()
    typed = False
    for name, value in headers:
        lower = name.lower()
        if lower in _HOSTS or lower.startswith(("proxy-", "ratelimit")):
            continue
        if lower == "www-authenticate":  # only on routes without credentials that the host checks
            _host.message("response_header", data=f"{name}\n{value.strip()}".encode())
            continue
        typed = typed or lower == "content-type"
        _response.set_header(name, value.strip(" \t"))
    return typed


def _warm(paths: tuple[str, ...], get: Callable[[str, str], int]) -> None:
    """Requests paths in the start. One that raises ends the start, and an answer of 500 and above is a warning."""
    from ._serve import _frames, _title

    for whole in paths:
        path, _, query = whole.partition("?")
        _host.HostError.last = None
        try:
            status = get(path, query)
        except Exception as error:
            text = f"GET {whole}, which warm names, fails in the start: {_title(error)}"
            raise RuntimeError(text).with_traceback(error.__traceback__) from None
        if status >= 500:
            refused = _host.HostError.last  # which the application has caught
            why = f": {_title(refused)}" if refused else ", and the lines before this one may say why"
            _host.log(_host.WARN, f"GET {whole}, which warm names, answers {status} in the start, so what it prepares is missing{why}")
            for frame in _frames(refused.__traceback__) if refused else ():
                _host.log(_host.WARN, frame)


class WSGI(Application):
    """A WSGI application."""

    def __init__(self, app: Callable[..., Any], warm: tuple[str, ...]) -> None:
        super().__init__()
        self.app = app
        self.warm = warm

    def start(self) -> None:
        def get(path: str, query: str) -> int:
            status, _, _ = self._run(_environ("GET", "", path.encode(), query, [("host", "localhost")], b"", _START))
            return int(status.split(None, 1)[0])

        _warm(self.warm, get)

    def _run(self, environ: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
        answer: list[Any] = []
        parts: list[bytes] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], None]:
            if answer and exc_info is None:
                raise AssertionError("start_response was called twice")
            if _response.begun:
                raise exc_info[1].with_traceback(exc_info[2])
            answer[:] = [status, headers]
            return write

        def write(part: bytes) -> None:
            if part and not parts and not _response.begun and answer:
                status, headers = _head(*answer)
                if _is_in_parts(status, headers):
                    _begin(status, headers)
            if _response.begun:
                _response.write(part)
            elif part:
                parts.append(part)

        result: Any = None
        try:
            result = self.app(environ, start_response)
            # A response of Django says whether it is streamed.
            if not _response.begun and (hasattr(result, "__len__") or not getattr(result, "streaming", True)):
                parts.extend(result)
            else:
                for part in result:
                    write(part)
        except _response.Gone:
            pass
        finally:
            if hasattr(result, "close"):
                result.close()
        if not answer:
            raise AssertionError("the application has not called start_response")
        return answer[0], answer[1], b"".join(parts)

    def __call__(self) -> Any:
        request = Request()
        headers = _pairs(4)  # each character is a byte
        prefix, path = _split(request)
        query = request.raw_query
        streamed = _context.context().streamed_body
        environ = _environ(request.method, prefix, path, query, headers, b"" if streamed else request.body, _origin(headers))
        if streamed:
            environ["wsgi.input"] = request.stream
            del environ["CONTENT_LENGTH"]
            for name, value in headers:
                if name == "content-length":
                    environ["CONTENT_LENGTH"] = value
        auth = _context.context().auth
        if auth.kind != "anonymous":
            environ["REMOTE_USER"] = auth.user_id or auth.key_id or "system"
            environ["AUTH_TYPE"] = auth.kind
        status, headers, body = self._run(environ)
        if not _response.begun:
            _send(*_head(status, headers), body)
        return ANSWERED


def _head(status: str, headers: list[tuple[str, str]]) -> tuple[int, list[tuple[str, str]]]:
    """The status and the headers of WSGI."""
    return int(status.split(None, 1)[0]), [(name, _unwrapped(value)) for name, value in headers]


def _unwrapped(value: str) -> str:
    """A header's value of WSGI, whose characters are bytes (PEP 3333), as text."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def _environ(
    method: str, prefix: str, path: bytes, query: str, headers: list[tuple[str, str]], body: bytes, origin: tuple[str, str, str]
) -> dict[str, Any]:
    from urllib.parse import unquote_to_bytes

    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": unquote_to_bytes(prefix).decode("latin-1"),
        "PATH_INFO": path.decode("latin-1"),
        "QUERY_STRING": query,
        "SERVER_NAME": origin[1],
        "SERVER_PORT": origin[2],
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": origin[0],
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }
    for name, value in headers:
        key = name.upper().replace("-", "_")
        if "_" in name:
            continue  # it would look like another header
        if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            key = "HTTP_" + key
        environ[key] = f"{environ[key]},{value}" if key in environ else value
    environ["CONTENT_LENGTH"] = str(len(body))
    return environ


class ASGI(Application):
    """An ASGI application."""

    def __init__(self, app: Callable[..., Any], warm: tuple[str, ...]) -> None:
        super().__init__()
        self.app = app
        self.warm = warm
        self.state: dict[str, Any] = {}

    def start(self) -> None:
        run(self._lifespan())
        _warm(self.warm, lambda path, query: run(
            self._run(self._scope("GET", "", path.encode(), query, [("host", "localhost")], _START), b""))[0])

    async def _lifespan(self) -> None:
        """Tells the application that it starts. It is not told that it ends, since a sandbox has no end."""
        import asyncio

        from . import aio

        started: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        received = 0

        async def receive() -> dict[str, Any]:
            nonlocal received
            received += 1
            if received > 1:
                await asyncio.get_running_loop().create_future()  # for ever
            return {"type": "lifespan.startup"}

        async def send(event: dict[str, Any]) -> None:
            if not started.done():
                started.set_result(event)

        async def live() -> None:
            try:
                await self.app({"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}, receive, send)
            except Exception:
                pass  # it does not support the protocol
            if not started.done():
                started.set_result({"type": "lifespan.startup.complete"})

        task = asyncio.get_running_loop().create_task(live())
        aio._kept.add(task)
        event = await started
        if event["type"] == "lifespan.startup.failed":
            raise RuntimeError(f"the application has not started: {event.get('message', '')}")

    def _scope(
        self, method: str, prefix: str, path: bytes, query: str, headers: list[tuple[str, str]], origin: tuple[str, str, str]
    ) -> dict[str, Any]:
        whole = (path if _without_root() else prefix.encode() + path).decode("utf-8", "replace")
        return {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "method": method,
            "scheme": origin[0], "path": whole, "raw_path": whole.encode(), "root_path": prefix, "query_string": query.encode(),
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
            "client": None, "server": (origin[1], int(origin[2])), "state": dict(self.state), "extensions": {},
        }

    async def _run(self, scope: dict[str, Any], body: bytes | None) -> tuple[int, list[tuple[str, str]], bytes]:
        import asyncio

        received = False
        status = 0
        headers: list[tuple[str, str]] = []
        parts: list[bytes] = []
        ended = asyncio.Event()
        gone: _response.Gone | None = None

        async def receive() -> dict[str, Any]:
            nonlocal received
            if not received:
                part = read_part() if body is None else body
                received = body is not None or not part
                return {"type": "http.request", "body": part, "more_body": not received}
            await ended.wait()
            return {"type": "http.disconnect"}

        async def send(event: dict[str, Any]) -> None:
            nonlocal status, gone
            if gone:
                raise gone
            if event["type"] == ("http.response.body" if status == 0 else "http.response.start") or ended.is_set():
                raise RuntimeError(f"the event {event['type']} is not expected: the response " + (
                    "has ended" if ended.is_set() else "has not started" if status == 0 else "has started"))
            if event["type"] == "http.response.start":
                status = event["status"]
                headers.extend((bytes(n).decode("latin-1"), bytes(v).decode("utf-8", "replace")) for n, v in event.get("headers", ()))
            elif event["type"] == "http.response.body":
                part, more = bytes(event.get("body", b"")), event.get("more_body", False)
                if more and not parts and not _response.begun and _is_in_parts(status, headers):
                    _begin(status, headers)
                try:
                    (_response.write if _response.begun else parts.append)(part)
                except _response.Gone as error:
                    gone = error
                    ended.set()
                    raise
                if not more:
                    ended.set()
            else:
                raise ValueError(f"the event {event['type']} is not one of an HTTP response")

        try:
            await self.app(scope, receive, send)
        except Exception as error:
            from ._serve import answer_to, report

            if not gone:
                if not ended.is_set() or status < 400 or answer_to(error):  # below 400 the request would commit
                    raise
                _host.log(_host.REPORT, report(error))  # of Starlette, which raises it again after its page
        if not ended.is_set():
            raise AssertionError("the application has not ended its response" if status else "the application has sent no response")
        return status, headers, b"".join(parts)

    def __call__(self) -> Any:
        request = Request()
        headers = _pairs(4)  # each character is a byte
        prefix, path = _split(request)
        scope = self._scope(request.method, prefix, path, request.raw_query, headers, _origin(headers))
        scope["raw_path"] = request.path.encode()
        answer = run(self._run(scope, None if _context.context().streamed_body else request.body))
        if not _response.begun:
            _send(*answer)
        return ANSWERED


def _without_root() -> bool:
    """Whether the application wants its paths without root_path: Starlette does before 0.33."""
    starlette = sys.modules.get("starlette")
    if starlette is None:
        return False
    major, minor = starlette.__version__.split(".")[:2]
    return (int(major), int(minor)) < (0, 33)


def run(coroutine: Any) -> Any:
    """Runs a coroutine to its end. asyncio is imported when the first one runs: apps without async handlers do not need it."""
    from . import aio

    return aio.run(coroutine)


def wsgi(app: Callable[..., Any], *, warm: str | tuple[str, ...] = ()) -> WSGI:
    """A WSGI application as a handler: shop = wsgi(app), with the route ANY /shop/*rest -> shop.

    The paths in warm are requested once, before the first request: what the application makes lazily is then there.
    """
    return WSGI(app, (warm,) if isinstance(warm, str) else tuple(warm))


def asgi(app: Callable[..., Any], *, warm: str | tuple[str, ...] = ()) -> ASGI:
    """An ASGI application as a handler: shop = asgi(app), with the route ANY /shop/*rest -> shop.

    The paths in warm are requested once, before the first request: what the application makes lazily is then there.
    """
    return ASGI(app, (warm,) if isinstance(warm, str) else tuple(warm))
