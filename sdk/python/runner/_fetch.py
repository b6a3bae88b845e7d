"""Requests to other services, to origins that the schema declares."""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from . import _host, _values


class FetchResponse:
    """What a service has answered. Every status is a success."""

    __slots__ = ("status", "url", "header_lines", "body")

    def __init__(self, result: dict[str, Any]) -> None:
        self.status: int = result["status"]
        self.url: str | None = result.get("url")  # of the last redirect; None without one
        self.header_lines: list[tuple[str, str]] = [(name, value) for name, value in result["headers"]]
        body = result["body"]
        self.body: bytes = base64.b64decode(body["base64"]) if isinstance(body, dict) else (body or "").encode()

    @property
    def ok(self) -> bool:
        """Whether the status is 200 to 299."""
        return 200 <= self.status < 300

    @property
    def headers(self) -> dict[str, str]:
        """Headers by name in lower case; repeated lines are joined."""
        all: dict[str, str] = {}
        for name, value in self.header_lines:
            all[name] = f"{all[name]}, {value}" if name in all else value
        return all

    def text(self) -> str:
        """The body as text in UTF-8."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def arguments(
    url: str, method: str, headers: Mapping[str, str] | Iterable[tuple[str, str]] | None, body: bytes | str | None, json: Any,
    timeout: float | datetime.timedelta | None, redirect: str | None, *, header_bytes: bool = False, public_only: bool = False,
) -> bytes:
    lines: list[tuple[str, str]] = list(headers.items() if isinstance(headers, Mapping) else headers or ())  # type: ignore[arg-type]
    args: dict[str, Any] = {"url": url, "method": method.upper(), "headers": lines}
    if json is not None:
        if body is not None:
            raise TypeError("fetch: body and json are given: pass one of them")
        body = _values.encode(json, _unfit)
        if not any(name.lower() == "content-type" for name, _ in lines):
            lines.append(("content-type", "application/json"))
    if body is not None:
        args["body"] = body if isinstance(body, str) else {"base64": bytes(body)}
    if timeout is not None:
        args["timeout"] = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout
    if redirect is not None:
        args["redirect"] = redirect
    if public_only:
        args["publicOnly"] = True
    if header_bytes:  # each character of a value is one byte
        args["headerBytes"] = True
    return _values.arguments("fetch", args)


def by_byte(url: str, method: str, headers: list[tuple[str, str]], body: bytes | None, timeout: float | None) -> FetchResponse:
    """Sends a request of the standard library, in whose headers each character is one byte. It does not follow redirects."""
    return FetchResponse(_json(_host.operate("fetch", arguments(url, method, headers, body, None, timeout, "manual", header_bytes=True))))


def _unfit(path: list[str | int], wrong: str) -> Exception:
    return TypeError(f"fetch: {_values.shown(['json', *path])} {wrong}")


def fetch(
    url: str, *, method: str = "GET", headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    body: bytes | str | None = None, json: Any = None, timeout: float | datetime.timedelta | None = None,
    redirect: Literal["follow", "manual", "error"] | None = None, public_only: bool = False,
) -> FetchResponse:
    """Sends a request to another service, and waits. In async handlers, aio.fetch lets others run meanwhile.

    timeout is 10 seconds unless it is given. With public_only the URL must be that of a public host that the schema does not
    list: pass it for URLs that clients send.
    """
    return FetchResponse(_json(_host.operate("fetch", arguments(url, method, headers, body, json, timeout, redirect, public_only=public_only))))


_json = json.loads
