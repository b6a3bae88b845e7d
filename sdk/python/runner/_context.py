"""What a handler knows and may do beside the request itself."""

from __future__ import annotations

import datetime
import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from . import _host, _values
from ._values import Record

if TYPE_CHECKING:
    from .schema import RoleName, ScopeName, SecretName


class Auth(Record):
    """The caller, as the runner authenticated it."""

    kind: Literal["anonymous", "session", "apiKey", "system"]  # "system" is an operator
    user_id: str | None
    tenant: str | None
    roles: list[RoleName]
    key_id: str | None
    scope: ScopeName | None
    capability: str | None
    metadata: dict[str, Any] | None
    claims: dict[str, Any] | None  # of its JWT


class Job(Record):
    """The job that a handler runs for. Send id along as the idempotency key of what may not happen twice."""

    id: str
    attempt: int  # counts the runs from 1
    scheduled_for: datetime.datetime


class Context:
    """The context of the request at hand."""

    @cached_property
    def _read(self) -> dict[str, Any]:
        return json.loads(_host.text("context") or "{}")

    @property
    def request_id(self) -> str:
        """The id that the answer and the log have."""
        return self._read["requestId"]

    @property
    def route(self) -> str:
        """The template of the matched route: /v1/orders/:id."""
        return self._read["route"]

    @property
    def scheme(self) -> Literal["http", "https"]:
        """What the client has sent the request with, as the runner or a trusted proxy knows it."""
        return self._read["scheme"]

    @cached_property
    def auth(self) -> Auth:
        a = self._read["auth"]
        return Auth(
            a["kind"], a.get("userId"), a.get("tenant"), a.get("roles") or [], a.get("keyId"), a.get("scope"),
            a.get("capability"), a.get("metadata"), a.get("claims"),
        )

    @property
    def deadline(self) -> datetime.datetime:
        """When the request's time is over."""
        return datetime.datetime.fromisoformat(self._read["deadline"])

    @property
    def streamed_body(self) -> bool:
        """Whether the body of the request had not arrived when the handler began."""
        return self._read.get("streamedBody", False)

    @property
    def job(self) -> Job | None:
        """The job that the handler runs for; None for a request."""
        job = self._read.get("job")
        return Job(job["id"], job["attempt"], datetime.datetime.fromisoformat(job["scheduledFor"])) if job else None


_context: Context | None = None


def context() -> Context:
    """The context of the request at hand."""
    global _context
    if _context is None:
        _context = Context()
    return _context


def keep_writes() -> None:
    """Commits the writes of this request with any status; by default 400 and above discard them."""
    _host.message("keep_writes")


def secret(name: SecretName) -> str:
    """The value of a secret that the schema declares."""
    return _values.call("secret", {"name": name})["value"]


def var(name: str) -> Any:
    """The value of a variable that the schema declares, on this server."""
    value = _values.call("var", {"name": name})["value"]
    of = _values.reader(_values.schema.get("vars", {}).get(name, ""))
    return of(value) if of else value
