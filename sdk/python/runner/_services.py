"""Keys, sessions, webhooks, jobs and passwords."""

from __future__ import annotations

import builtins
import datetime
from typing import TYPE_CHECKING, Any, Literal

from . import _values
from ._values import Record

if TYPE_CHECKING:
    from .schema import RoleName, ScopeName, SecretName

# Of a lifetime: seconds, or a timedelta.
Seconds = int | datetime.timedelta


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _time(text: str | None) -> datetime.datetime | None:
    return None if text is None else datetime.datetime.fromisoformat(text)


class ApiKey(Record):
    """An API key, as its managers see it."""

    id: str
    scope: str
    capability: str
    name: str
    status: Literal["active", "rotating", "disabled", "expired", "revoked"]
    hint: str
    tenant: str | None
    owner: str | None  # the id of the user or the key that created it
    owner_kind: Literal["user", "key"] | None
    metadata: dict[str, Any] | None
    created_at: datetime.datetime
    expires_at: datetime.datetime | None
    rotated_at: datetime.datetime | None
    previous_token_expires_at: datetime.datetime | None
    revoked_at: datetime.datetime | None
    last_used_at: datetime.datetime | None
    token: str | None  # only of a new or rotated key; nothing shows it again


def _key(k: dict[str, Any]) -> ApiKey:
    return ApiKey(
        k["id"], k["scope"], k["capability"], k["name"], k["status"], k["hint"], k["tenant"], k["owner"], k["ownerKind"],
        k["metadata"], datetime.datetime.fromisoformat(k["createdAt"]), _time(k["expiresAt"]), _time(k["rotatedAt"]),
        _time(k["previousTokenExpiresAt"]), _time(k["revokedAt"]), _time(k["lastUsedAt"]), k.get("token"),
    )


class ApiKeyPage(Record):
    """A page of keys. next_cursor leads to the next one; it is None on the last."""

    keys: list[ApiKey]
    next_cursor: str | None


class ApiKeys:
    """The keys that the caller reaches: those that it created, and with @manage all of the scope in its tenant."""

    def create(
        self, scope: ScopeName, *, name: str | None = None, expires_in: Seconds | None = None, metadata: dict[str, Any] | None = None
    ) -> ApiKey:
        """Creates a key of a scope that the caller may issue."""
        return _key(_values.call("apiKeys.create", _given(scope=scope, name=name, expiresIn=expires_in, metadata=metadata)))

    def get(self, id: str) -> ApiKey:
        return _key(_values.call("apiKeys.get", {"id": id}))

    def list(self, scope: ScopeName | None = None) -> builtins.list[ApiKey]:
        """All keys, without tokens."""
        all: list[ApiKey] = []
        cursor: str | None = None
        while True:
            page = self.page(scope, limit=1000, cursor=cursor)
            all += page.keys
            cursor = page.next_cursor
            if cursor is None:
                return all

    def page(self, scope: ScopeName | None = None, *, limit: int = 100, cursor: str | None = None) -> ApiKeyPage:
        """At most limit (1 to 1,000) keys, with the cursor of the next page."""
        page = _values.call("apiKeys.list", _given(scope=scope, limit=limit, cursor=cursor))
        return ApiKeyPage([_key(key) for key in page["keys"]], page["nextCursor"])

    def rotate(self, id: str, *, grace_period: Seconds | None = None) -> ApiKey:
        """Gives the key a new token. Each older one ends after the grace period, or at its own end if that is sooner."""
        return _key(_values.call("apiKeys.rotate", {"id": id, **_given(gracePeriod=grace_period)}))

    def revoke(self, id: str) -> ApiKey:
        """Ends a key for good."""
        return _key(_values.call("apiKeys.revoke", {"id": id}))


class OpenedSession(Record):
    """A session that was opened. Its cookie goes to the browser; no handler sees it."""

    id: str
    expires_at: datetime.datetime


class LiveSession(Record):
    """A session that has not ended."""

    id: str
    user_id: str
    tenant: str | None
    roles: list[RoleName]
    created_at: datetime.datetime
    last_seen_at: datetime.datetime
    expires_at: datetime.datetime
    current: bool  # it is the session of this request


class SessionPage(Record):
    """A page of sessions. next_cursor leads to the next one; it is None on the last."""

    sessions: list[LiveSession]
    next_cursor: str | None


def _session(s: dict[str, Any]) -> LiveSession:
    time = datetime.datetime.fromisoformat
    return LiveSession(
        s["id"], s["userId"], s["tenant"], s["roles"], time(s["createdAt"]), time(s["lastSeenAt"]), time(s["expiresAt"]), s["current"]
    )


class UserSessions:
    """The sessions of a user. tenant is the caller's unless it is given; all_tenants selects those in every tenant."""

    def __init__(self, user: dict[str, str]) -> None:
        self._user = user

    def list(self, *, tenant: str | None = None, all_tenants: bool = False) -> builtins.list[LiveSession]:
        """All live sessions, oldest first."""
        all: list[LiveSession] = []
        cursor: str | None = None
        while True:
            page = self.page(tenant=tenant, all_tenants=all_tenants, limit=1000, cursor=cursor)
            all += page.sessions
            cursor = page.next_cursor
            if cursor is None:
                return all

    def page(
        self, *, tenant: str | None = None, all_tenants: bool = False, limit: int = 100, cursor: str | None = None
    ) -> SessionPage:
        """At most limit (1 to 1,000) of them, with the cursor of the next page."""
        args = _given(tenant=tenant, allTenants=all_tenants or None, limit=limit, cursor=cursor)
        page = _values.call("sessions.list", {**self._user, **args})
        return SessionPage([_session(s) for s in page["sessions"]], page["nextCursor"])

    def revoke_all(self, *, tenant: str | None = None, all_tenants: bool = False, keep: str | None = None) -> int:
        """Ends all of them but the one with the id keep, or "current" for the one that calls. Returns their number."""
        args = _given(tenant=tenant, allTenants=all_tenants or None)
        if keep is not None:
            args["except"] = keep
        return _values.call("sessions.revokeAll", {**self._user, **args})["count"]


class Sessions(UserSessions):
    """Sessions of the app's users: those of the caller, and of() for those of another user.

    A session of another user is not_found, unless the schema allows it.
    """

    def __init__(self) -> None:
        super().__init__({})

    def of(self, user: str) -> UserSessions:
        """The sessions of another user."""
        return UserSessions({"user": user if user is not None else _missing("sessions.of: user")})

    def create(
        self, user_id: str, *, tenant: str | None = None, roles: builtins.list[RoleName] | None = None, ttl: Seconds | None = None
    ) -> OpenedSession:
        """Signs a user in, on a route with mints: session. The answer sets the cookie."""
        s = _values.call("sessions.create", {"userId": user_id, **_given(tenant=tenant, roles=roles, ttl=ttl)})
        return OpenedSession(s["id"], datetime.datetime.fromisoformat(s["expiresAt"]))

    def revoke(self, id: str) -> None:
        """Ends a session."""
        _values.call("sessions.revoke", {"id": id if id is not None else _missing("sessions.revoke: id")})

    def revoke_current(self) -> None:
        """Ends the session that calls, and takes its cookie back."""
        _values.call("sessions.revoke", {})


def _missing(what: str) -> Any:
    from ._host import HostError

    raise HostError("invalid", f"{what} is None: check it before", what.partition(":")[0])


class Delivery(Record):
    """A signed delivery of a webhook."""

    id: str  # where the scheme has none, the signature
    timestamp: int | None  # when it was signed, in seconds since 1970


class Webhooks:
    """Webhooks on routes that do not say verify: themselves."""

    def verify(self, scheme: Literal["standard", "stripe", "github", "slack"], secret: SecretName) -> Delivery:
        """Checks that this request is signed with a declared secret; otherwise it is denied."""
        d = _values.call("webhooks.verify", {"scheme": scheme, "secret": secret})
        return Delivery(d["id"], d["timestamp"])


class EnqueuedJob(Record):
    """A job that was enqueued."""

    id: str
    created: bool  # False if a live job with the key was there


class Jobs:
    """Work for after the commit: jobs that the schema declares."""

    def enqueue(
        self, name: str, params: Any = None, *, delay: Seconds | None = None,
        at: datetime.datetime | None = None, key: str | None = None,
    ) -> EnqueuedJob:
        """Enqueues a job in the transaction of the request: it runs if and only if that commits.

        There is one live job of a name and key in a tenant: while it waits or runs, it is given instead of a new one.
        """
        j = _values.call("jobs.enqueue", {"name": name, "params": params or {}, **_given(delay=delay, at=at, key=key)})
        return EnqueuedJob(j["id"], j["created"])

    def cancel(self, id: str) -> bool:
        """Ends a job of the caller's tenant. False if it has ended before; an unknown id is not_found."""
        return _values.call("jobs.cancel", {"id": id})["cancelled"]


class PasswordCheck(Record):
    """Whether a password is right. It is true if so."""

    valid: bool
    rehash: bool  # store a new hash: this one has another algorithm or other parameters

    def __bool__(self) -> bool:
        return self.valid


class Passwords:
    """Passwords. The host hashes them, and the handler waits."""

    def hash(self, password: str) -> str:
        """A new hash of the password with Argon2id, as a PHC string."""
        return _values.call("password.hash", {"password": password})["hash"]

    def verify(self, password: str, hash: str | None) -> PasswordCheck:
        """Compares a password with a hash of hash(), or of bcrypt, scrypt or PBKDF2 as Django, passlib and Werkzeug write them.

        With None, for a user who does not exist, it takes as long and is false.
        """
        c = _values.call("password.verify", {"password": password, **_given(hash=hash)})
        return PasswordCheck(c["valid"], c["rehash"])


api_keys = ApiKeys()
sessions = Sessions()
webhooks = Webhooks()
jobs = Jobs()
password = Passwords()


def hmac_digest(
    secret: SecretName, data: bytes | str, algorithm: Literal["SHA-1", "SHA-256", "SHA-384", "SHA-512"] = "SHA-256"
) -> bytes:
    """The HMAC of data under a secret that the schema declares, which the handler then need not read."""
    text = data if isinstance(data, str) else {"base64": data}
    return bytes.fromhex(_values.call("hmac", {"algorithm": algorithm, "secret": secret, "data": text})["hex"])
