"""The request at hand."""

from __future__ import annotations

import io
import json
import re
import struct
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

from . import _host
from ._files import Upload, uploaded
from ._values import Record

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Body = TypeVar("Body", default=Any, covariant=True)
else:
    from typing import TypeVar

    Body = TypeVar("Body")


class BodyError(Exception):
    """A body that is not what the handler asked for. Unless it is caught, the answer is 400."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class File(Record):
    """A file of a form."""

    name: str  # of the field
    filename: str
    content_type: str
    data: bytes


class Form:
    """The fields and files of a form, each by its name in the order of the body."""

    def __init__(self) -> None:
        self.fields: dict[str, list[str]] = {}
        self.files: dict[str, list[File]] = {}

    def get(self, name: str, default: str | None = None) -> str | None:
        """The first value of a field."""
        values = self.fields.get(name)
        return values[0] if values else default

    def file(self, name: str) -> File | None:
        """The first file of a field; None if none was sent."""
        files = self.files.get(name)
        return files[0] if files else None


def _pairs(kind: int) -> list[tuple[str, str]]:
    status, data = _host.message("request_pairs", kind)
    if status != "ok":
        raise _host.refusal(status, "request_pairs")
    return _read_pairs(data)


def _read_pairs(data: bytes) -> list[tuple[str, str]]:
    pairs, at = [], 0
    while at < len(data):
        name, value = struct.unpack_from("<II", data, at)
        at += 8
        pairs.append((data[at : at + name].decode(), data[at + name : at + name + value].decode()))
        at += name + value
    return pairs


def _many(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    all: dict[str, list[str]] = {}
    for name, value in pairs:
        all.setdefault(name, []).append(value)
    return all


class _Incoming(io.RawIOBase):
    """The body as it comes."""

    def __init__(self) -> None:
        super().__init__()
        self._part = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._part or memoryview(read_part())
        length = min(len(part), len(buffer))
        buffer[:length] = part[:length]
        self._part = part[length:]
        return length


_FAILURES = {
    "too_large": "it is larger than the route allows",
    "deadline": "it arrives too slowly",
    "unavailable": "the client has ended the connection, or what it sends is not valid",
}


def read_part() -> bytes:
    """The next part of the body, of at most 64 KiB, for which it waits; empty at the end."""
    status, data = _host.message("request_read")
    if status in _FAILURES:
        raise OSError(f"read the body of the request: {_FAILURES[status]}")
    if status != "ok":
        raise _host.refusal(status, "request_read")
    return data


class Request(Generic[Body]):
    """A request. It reads from the host what the handler asks for. Body is the type of its JSON."""

    @cached_property
    def method(self) -> str:
        return _host.text("request_method") or ""

    @cached_property
    def path(self) -> str:
        """The raw path, without the query."""
        return _host.text("request_path") or ""

    @cached_property
    def params(self) -> dict[str, str]:
        """Path parameters by name, decoded."""
        return dict(_pairs(0))

    @cached_property
    def query_all(self) -> dict[str, list[str]]:
        """All query values by name, in order."""
        return _many(_pairs(1))

    @cached_property
    def query(self) -> dict[str, str]:
        """Query values by name; of several the first."""
        return {name: values[0] for name, values in self.query_all.items()}

    @cached_property
    def raw_query(self) -> str:
        """The query as it was sent, without its "?". Signatures of URLs are made of it."""
        return "".join(value for _, value in _pairs(3))

    @cached_property
    def headers(self) -> dict[str, str]:
        """Headers by name in lower case; repeated lines are joined. Credentials that the runner has checked are not among them."""
        return {name: ", ".join(values) for name, values in _many(_pairs(2)).items()}

    @cached_property
    def body(self) -> bytes:
        """The exact body, for signatures."""
        status, data = _host.message("request_body", 0)
        if status != "ok":
            raise _host.refusal(status, "request_body")
        return data

    @cached_property
    def stream(self) -> io.BufferedReader:
        """The body as it comes, as a file.

        On a route with "stream:" the handler runs before the body has arrived, and "body:" may be larger than memory. A read
        waits for the client, and raises OSError if that is gone, sends too much or is too slow. What was read is gone, so the
        handler does not run again: if another request has changed what it has read from the store, the client gets 409.
        "body" cannot be read after the first part.
        """
        return io.BufferedReader(_Incoming(), 65536)

    def text(self) -> str:
        """The body as text in UTF-8."""
        try:
            return self.body.decode()
        except UnicodeDecodeError as error:
            raise BodyError("bad_request", f"the body is not UTF-8: byte {error.start}") from None

    def json(self) -> Body:
        """The JSON body. An empty one and null give {}, so that a check for a field finds it missing.

        One that is not JSON is a BodyError, which answers 400 invalid_json.
        """
        body = self.body
        if not body.strip():
            return {}  # type: ignore[return-value]
        try:
            value = _decode(body.decode())
        except (ValueError, RecursionError) as error:
            raise BodyError("invalid_json", f"the body is not JSON: {error}") from None
        if body.count(b"[") + body.count(b"{") > 64 and _deeper(value, 64):
            raise BodyError("invalid_json", "the body is not JSON that can be read: it is nested more than 64 levels deep")
        if b"\\u" in body and not _is_text(value):
            raise BodyError("invalid_json", "the body is not JSON that can be read: it has an unpaired surrogate")
        return {} if value is None else value  # type: ignore[return-value]

    @cached_property
    def upload(self) -> Upload:
        """What the client has uploaded, on a route with "upload: on". Its files are stored, and are gone after the request
        unless a row that is committed has them."""
        return uploaded()

    def form(self) -> Form:
        """The body as a form, multipart/form-data or application/x-www-form-urlencoded. Another body answers 400."""
        content_type = self.headers.get("content-type", "")
        kind = content_type.partition(";")[0].strip().lower()
        form = Form()
        if kind == "application/x-www-form-urlencoded":
            try:
                for pair in filter(None, self.body.split(b"&")):
                    name, _, value = pair.partition(b"=")
                    form.fields.setdefault(_decoded(name), []).append(_decoded(value))
            except UnicodeDecodeError:
                raise BodyError("bad_request", "the form is not UTF-8") from None
            return form
        if kind != "multipart/form-data":
            raise BodyError("bad_request", "the body is not a form: its content type must be multipart/form-data or application/x-www-form-urlencoded")
        _parts(form, content_type, self.body)
        return form


# The modules urllib.parse and email would be imported in each request that reads a form, which takes longer than to read it.
_PARAM = re.compile(r';\s*([^\s=;]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;]*))')
_ESCAPE = re.compile(rb"%([0-9a-fA-F]{2})")


def _param(header: str, name: str) -> str | None:
    """A parameter of a header (RFC 2045)."""
    for key, quoted, plain in _PARAM.findall(header):
        if key.lower() == name:
            return quoted.replace("\\\\", "\\").replace('\\"', '"') if quoted else plain.strip()
    return None


def _decoded(text: bytes) -> str:
    """A name or a value of a form (WHATWG URL, section 5.1)."""
    return _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), text.replace(b"+", b" ")).decode()


def _parts(form: Form, content_type: str, body: bytes) -> None:
    """Reads a form of parts (RFC 7578)."""
    boundary = _param(content_type, "boundary")
    if not boundary:
        raise BodyError("bad_request", "the form has no boundary in its content type")
    begin = b"--" + boundary.encode()
    parts = (b"\r\n" + body).split(b"\r\n" + begin)
    if len(parts) < 2 or not parts[-1].startswith(b"--"):
        raise BodyError("bad_request", "the form does not end with its boundary: it is not complete")
    for part in parts[1:-1]:
        head, found, data = part.partition(b"\r\n\r\n")
        if not found:
            raise BodyError("bad_request", "a part of the form has no empty line after its headers")
        fields: dict[str, str] = {}
        for line in head.decode("utf-8", "replace").split("\r\n"):
            name, colon, value = line.partition(":")
            if colon:
                fields.setdefault(name.strip().lower(), value.strip())
        disposition = fields.get("content-disposition", "")
        name = _param(disposition, "name")
        if name is None:
            raise BodyError("bad_request", "a part of the form has no name")
        filename = _param(disposition, "filename")
        if filename is not None:
            kind = fields.get("content-type", "application/octet-stream")
            form.files.setdefault(name, []).append(File(name, filename, kind, data))
        else:
            try:
                form.fields.setdefault(name, []).append(data.decode())
            except UnicodeDecodeError:
                raise BodyError("bad_request", f"the field {name:.80} of the form is not UTF-8") from None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse).decode


def _deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested in more levels."""
    layer = [value]
    for _ in range(levels):
        layer = [
            inner for outer in layer for inner in (outer.values() if type(outer) is dict else outer) if type(inner) in (dict, list)
        ]
        if not layer:
            return False
    return True


def _is_text(value: Any) -> bool:
    """Whether all texts of a value have a form in UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
