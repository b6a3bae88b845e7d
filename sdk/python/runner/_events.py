"""Server-sent events."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Any, Never

from . import _values
from ._response import Parts, Response, in_parts

_FIELDS = ("event", "id", "retry", "data")
_LINE_END = re.compile("\r\n|\r|\n")


def events(items: Iterable[Any] | AsyncIterable[Any], *, headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None) -> Response[Never]:
    """Answers with server-sent events, each sent when the iterator has made it. An event is text, or a dict or a dataclass with
    some of event, data, id and retry, which is in milliseconds. Data that is not text is sent as JSON."""
    return in_parts(Parts(items, _event, True), "text/event-stream", headers=headers)


def _event(item: Any) -> bytes:
    if isinstance(item, str):
        item = {"data": item}
    elif hasattr(type(item), "__dataclass_fields__"):
        import dataclasses

        item = {f.name: getattr(item, f.name) for f in dataclasses.fields(item)}
    elif not isinstance(item, dict):
        raise TypeError(f"an event is a {type(item).__qualname__}: yield text, or a dict with event, data, id or retry")
    for name in item:
        if name not in _FIELDS:
            raise ValueError(f"an event has the field {name!r}: it may have event, data, id and retry. Write {{\"data\": …}}")
    lines = [f"{name}: {_line(name, item[name])}" for name in _FIELDS[:3] if item.get(name) is not None]
    if "data" in item:
        data = item["data"]
        text = data if isinstance(data, str) else _values.encode(data, _unfit).decode()
        lines += [f"data: {line}" for line in _LINE_END.split(text)]
    return "\n".join([*lines, "", ""]).encode() if lines else b""


def _line(name: str, value: Any) -> str:
    """The value of a field that has one line."""
    if isinstance(value, int) and not isinstance(value, bool) and name != "event" and (name == "id" or value >= 0):
        return str(value)
    if name == "retry":
        raise ValueError(f"retry of an event is {value!r}: it is the milliseconds as an int")
    if not isinstance(value, str) or _LINE_END.search(value) or "\0" in value:
        raise ValueError(f"{name} of an event is {value!r}: it is text without line ends and NUL")
    return value


def _unfit(path: list[str | int], wrong: str) -> Exception:
    return TypeError(f"an event cannot be sent: {_values.shown(['data', *path])} {wrong}")
