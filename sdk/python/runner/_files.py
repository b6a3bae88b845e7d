"""Files: those of rows, those that a client has uploaded, and those that the handler makes."""

from __future__ import annotations

import base64
import datetime
import io
from typing import Any, BinaryIO, Callable, Iterable, Iterator, Literal

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
    if isinstance(contents, (bytearray, memoryview)):
        contents = bytes(contents)
    if isinstance(contents, bytes):
        if len(contents) <= _WRITE:
            return stored(_values.call("file.create", {**about, "data": _data(contents)}))
        contents = io.BytesIO(contents)
    writer = _values.call("file.open", about)["writer"]
    for part in _parts(contents):
        for at in range(0, len(part), _WRITE):
            _values.call("file.write", {"writer": writer, "data": _data(part[at : at + _WRITE])})
    return stored(_values.call("file.end", {"writer": writer}))


def sign_file(
    file: StoredFile, *, expires: int | datetime.timedelta, disposition: Literal["inline", "attachment"] | None = None, name: str | None = None,
) -> str:
    """Makes a link to the file of a row: sign_file(row["photo"], expires=timedelta(minutes=10)).

    The link is a path such as /_files/…, which works without credentials until it expires, for as long as the row has this
    file. expires is a timedelta, or seconds: at most seven days. disposition and name are as for send_file.
    """
    given = {"id": file.id, "expires": expires, "disposition": disposition, "name": name}
    link: str = _values.call("file.sign", {key: value for key, value in given.items() if value is not None})["url"]
    return link


def _parts(contents: BinaryIO | Iterable[bytes]) -> Iterator[bytes]:
    if hasattr(contents, "read"):
        read: Callable[[int], bytes] = getattr(contents, "read")
        return iter(lambda: read(_WRITE), b"")
    return iter(contents)


def _data(contents: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(contents).decode()}
