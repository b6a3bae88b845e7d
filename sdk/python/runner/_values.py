"""Values of Python as the host writes them in JSON, and back."""

from __future__ import annotations

import base64
import datetime
import decimal
import enum
import json
import math
import sys
from typing import Any, Callable, dataclass_transform

from . import _host
from ._handlers import camel

# The app's schema, as the build writes it: see Schema in develop/toolchain/python.
try:
    with open("/app/schema.json", encoding="utf-8") as _file:
        schema: dict[str, Any] = json.load(_file)
except OSError:
    schema = {}


class Null:
    """The type of NULL."""

    _only: Null | None = None

    def __new__(cls) -> Null:
        cls._only = cls._only or super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "NULL"

    def __bool__(self) -> bool:
        return False


#: The null of a condition: where("paidAt", "=", NULL). None there is an error, because it is what a missing value is.
NULL = Null()


#: What to do about a missing value in a condition.
REMEDY = ": check it before the query, or compare with NULL on purpose"


@dataclass_transform(frozen_default=True)
class Record:
    """A value that the SDK makes, with the fields that its class declares. In JSON it is an object, and created_at createdAt."""

    def __init_subclass__(cls) -> None:
        cls.__match_args__ = tuple(cls.__annotations__)

    def __init__(self, *values: Any) -> None:
        self.__dict__.update(zip(self.__match_args__, values, strict=True))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class _NoForm(Exception):
    """A value that JSON has no form for. The message says what it is, and what to do."""


def _form(value: Any) -> Any:
    """A value that JSON has no form for as one that it has."""
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            raise _NoForm(f"is {value}: a decimal must be finite")
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None or value.utcoffset() is None:
            raise _NoForm("is a datetime without a time zone: write datetime.now(timezone.utc), or .replace(tzinfo=…)")
        return value.astimezone(datetime.timezone.utc).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        seconds = value.total_seconds()
        if seconds != int(seconds):
            raise _NoForm("is a timedelta with a part of a second: durations are whole seconds")
        return int(seconds)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if "uuid" in sys.modules and isinstance(value, sys.modules["uuid"].UUID):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.value
    if value is NULL:
        return None
    if isinstance(value, Record):
        return {camel(name): member for name, member in vars(value).items()}
    if hasattr(type(value), "__dataclass_fields__"):
        import dataclasses

        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if remedy := getattr(type(value), "_remedy", None):
        raise _NoForm(remedy)
    if isinstance(value, (set, frozenset)):
        raise _NoForm("is a set: write sorted(…) or list(…)")
    if hasattr(value, "__next__"):
        raise _NoForm("is an iterator: write list(…), or answer with stream(…)")
    if callable(value):
        raise _NoForm("is a function: call it")
    if hasattr(value, "__await__"):
        raise _NoForm("is a coroutine: await it")
    raise _NoForm(f"is a {type(value).__qualname__}, which has no form in JSON: use a dict, a list, text, a number or a dataclass")


# One encoder for all values: json.dumps would make one for each. It does not look for values that contain themselves, which
# end in RecursionError.
_chunks = json.encoder.c_make_encoder(None, _form, json.encoder.encode_basestring, None, ":", ",", False, False, False)  # type: ignore[misc]


def _encode(value: Any) -> str:
    return "".join(_chunks(value, 0))


_parse = json.JSONDecoder().decode


def encode(value: Any, place: Callable[[list[str | int], str], Exception]) -> bytes:
    """The value in JSON. place makes the error about what has no form in it, of its path and a sentence."""
    try:
        return _encode(value).encode()
    except (ValueError, TypeError, RecursionError, _NoForm) as error:
        path: list[str | int] = []
        found = _find(value, path)
        raise place(path, found or f"has no form in JSON: {error}") from None


def _find(value: Any, path: list[str | int]) -> str | None:
    """What is wrong with a value, and its path."""
    if value is None or isinstance(value, (bool, int)):
        return None
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return "is text with an unpaired surrogate, which UTF-8 has no form for"
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"is {'NaN' if value != value else 'infinite'}"
    if len(path) >= 64:
        del path[4:]
        return "is nested too deeply: at most 64 levels, and nothing that contains itself"
    if isinstance(value, dict):
        for name, member in value.items():
            if not isinstance(name, str):
                return f"has the key {name!r}, and keys are text"
            path.append(name)
            if found := _find(member, path):
                return found
            path.pop()
        return None
    if isinstance(value, (list, tuple)):
        for i, element in enumerate(value):
            path.append(i)
            if found := _find(element, path):
                return found
            path.pop()
        return None
    try:
        return _find(_form(value), path)
    except _NoForm as error:
        return str(error)


def shown(path: list[str | int]) -> str:
    """A path as Python writes it."""
    if not path:
        return ""
    return str(path[0]) + "".join(f"[{key!r}]" if isinstance(key, int) else f".{key}" for key in path[1:])


def call(op: str, args: dict[str, Any]) -> Any:
    """Runs an operation, and returns its result."""
    return _parse(_host.operate(op, arguments(op, args)).decode())


def arguments(op: str, args: dict[str, Any]) -> bytes:
    """The arguments of an operation in JSON. An error names the field and the operator of a condition."""

    def place(path: list[str | int], wrong: str) -> Exception:
        at = path.index("where") if "where" in path else -1
        node: Any = args
        for i, key in enumerate(path):
            if 0 <= at < i and key == 2 and isinstance(node, (list, tuple)) and isinstance(node[0], str):
                inside = f"has at {shown(path[i + 1:])} what " if path[i + 1 :] else ""
                remedy = "" if ": " in wrong else REMEDY
                return _host.HostError("invalid", f"{node[0]}: the value of {node[1]} {inside}{wrong}{remedy}", op)
            node = node[key]  # type: ignore[index]
        remedy = "" if ": " in wrong else ": check it first, or use None on purpose"
        return _host.HostError("invalid", f"{op}: {shown(path) or 'the arguments'} {wrong}{remedy}", op)

    return encode(args, place)


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def _duration(seconds: int) -> datetime.timedelta:
    return datetime.timedelta(seconds=seconds)


_readers: dict[str, Callable[[Any], Any]] = {
    "decimal": decimal.Decimal,
    "time": _time,
    "date": datetime.date.fromisoformat,
    "duration": _duration,
    "bytes": base64.b64decode,
    "file": lambda value: _files.stored(value),
}


def reader(type_name: str) -> Callable[[Any], Any] | None:
    """What makes a value of Python of the JSON of a type; None: the JSON is the value."""
    return _readers.get(type_name.partition("(")[0])


def _lists(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda values: [read(value) for value in values]


def _plan(fields: dict[str, Any]) -> tuple[list[tuple[str, Callable[[Any], Any]]], dict[str, str]]:
    read, relations = [], {}
    for name, kind in fields.items():
        if isinstance(kind, dict):
            relations[name] = kind.get("one") or kind.get("many")
            continue
        of = reader(kind.removeprefix("list of "))
        if of is not None:
            read.append((name, _lists(of) if kind.startswith("list of ") else of))
    return read, relations


_plans = {name: _plan(fields) for name, fields in schema.get("entities", {}).items()}


def rows(entity: str, all: list[Any]) -> list[Any]:
    """The rows of an entity with values of Python. It changes them in place."""
    plan = _plans.get(entity)
    if plan is None:
        return all
    read, relations = plan
    if not read and not relations:
        return all
    for row in all:
        for name, of in read:
            value = row.get(name)
            if value is not None:
                row[name] = of(value)
        for name, target in relations.items():
            value = row.get(name)
            if type(value) is dict:
                rows(target, [value])
            elif type(value) is list:
                rows(target, value)
    return all


def group(entity: str, result: Any, days: set[str]) -> Any:
    """A group of an aggregate with values of Python. Fields in days are grouped by days, weeks or months."""
    kinds = schema.get("entities", {}).get(entity, {})
    for name, part in result.items():
        if isinstance(part, dict):
            for field, value in part.items():
                kind = kinds.get(field)
                of = reader(kind) if isinstance(kind, str) else None
                if name == "group" and field in days:
                    of = datetime.date.fromisoformat
                if of is None and name == "avg" and isinstance(value, str):
                    of = decimal.Decimal
                if of is not None and value is not None:
                    part[field] = of(value)
    return result


from . import _files  # noqa: E402  # it uses this module
