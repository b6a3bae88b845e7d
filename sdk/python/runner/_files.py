"""Files: those of rows, those that a client has uploaded, and those that the handler makes."""

from __future__ import annotations

import base64
import io
from typing import Any, BinaryIO, Iterable, Iterator

from . import _values
from ._values import Record

# What one operation reads or writes, in bytes.
_READ = 1 << 20
_WRITE = 768 << 10


class StoredFile(Record):
    """A file: the value of a field of type file, or one that the request has uploaded or the handler has made."""

    id: str
    #: A text for people, never a path.
    name: str
    #: The media type without parameters. It is found from the bytes.
    type: str
    #: In bytes.
    size: int
    #: The digest of the bytes, in hexadecimal digits.
    sha256: str

    def parts(self) -> Iterator[bytes]:
        """The bytes, of which one part at a time is in memory. An answer can be a stream of them."""
        at = 0
        while at < self.size:
            data = _values.call("file.read", {"id": self.id, "offset": at, "length": _READ})["data"]
            part = data.encode() if isinstance(data, str) else base64.b64decode(data["base64"])
            at += len(part)
            yield part

    def read(self) -> bytes:
        """All bytes, in memory."""
        return b"".join(self.parts())

    def text(self) -> str:
        """The bytes as text in UTF-8."""
        return self.read().decode()


class UploadedFile(Record):
    """A file of an upload."""

    file: StoredFile
    #: The name of its field; empty for a body that is one file.
    field: str
    #: The media type that the client has declared; empty: none.
    declared: str


class Upload:
    """The body of a request on a route with `upload: on`."""

    def __init__(self, fields: list[list[str]], files: list[dict[str, Any]]) -> None:
        #: The names and texts of the fields, in the order of the body.
        self.fields = [(name, value) for name, value in fields]
        self.files = [UploadedFile(stored(f), f["field"], f["declared"]) for f in files]

    def get(self, name: str, default: str | None = None) -> str | None:
        """The first text of that name."""
        return next((value for known, value in self.fields if known == name), default)

    def get_all(self, name: str) -> list[str]:
        """All texts of that name."""
        return [value for known, value in self.fields if known == name]

    def file(self, field: str = "") -> StoredFile | None:
        """The first file of that field; without a name the body that is one file. None: it was not sent."""
        return next((f.file for f in self.files if f.field == field), None)


def stored(value: dict[str, Any]) -> StoredFile:
    """The file that the host has described."""
    return StoredFile(value["id"], value["name"], value["type"], value["size"], value["sha256"])


def uploaded() -> Upload:
    """What the client has uploaded."""
    form = _values.call("request.form", {})
    return Upload(form["fields"], form["files"])


def file(contents: str | bytes | BinaryIO | Iterable[bytes], *, name: str = "file", type: str = "") -> StoredFile:
    """Makes a file, which a row can have: insert("Post", {"photo": file(data, name="photo.png")}).

    It is gone after the request unless a row that is committed has it. Of an open file or an iterable of bytes, one part at
    a time is in memory. The type is found from the bytes; type names that of a text or of unknown bytes more closely.
    """
    about: dict[str, Any] = {"name": name}
    if type:
        about["type"] = type
    if isinstance(contents, str):
        if len(contents) <= _WRITE // 4:
            return stored(_values.call("file.create", {**about, "data": contents}))
        contents = contents.encode()
    if isinstance(contents, (bytes, bytearray, memoryview)):
        if len(contents) <= _WRITE:
            return stored(_values.call("file.create", {**about, "data": _data(contents)}))
        contents = io.BytesIO(contents)
    parts: Iterable[bytes] = iter(lambda: contents.read(_WRITE), b"") if hasattr(contents, "read") else contents  # type: ignore[union-attr]
    writer = _values.call("file.open", about)["writer"]
    for part in parts:
        for at in range(0, len(part), _WRITE):
            _values.call("file.write", {"writer": writer, "data": _data(part[at : at + _WRITE])})
    return stored(_values.call("file.end", {"writer": writer}))


def _data(contents: Any) -> dict[str, str]:
    return {"base64": base64.b64encode(contents).decode()}
