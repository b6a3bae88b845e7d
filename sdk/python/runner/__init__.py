"""The SDK for handlers written in Python.

A file in the app's directory handlers has a function for each handler, named as in the schema:

    from runner import Request, bad_request, created, handler, insert

    @handler
    def create_order(req: Request):
        order = req.json()
        if not order.get("item"):
            return bad_request("missing field: item")
        return created(insert("Order", order))

The program starts once, when the release is activated: the imports and what stands outside of functions. Each request
continues from there in a process of its own, and nothing that one request leaves is seen by another.

Rows are read and changed with the caller's authority. All that one request reads and writes is one transaction: it commits
when the handler answers below 400; when another request got in between, the handler runs again.
"""

from ._context import Auth, Context, Job, context, keep_writes, secret
from ._events import events
from ._fetch import FetchResponse, fetch
from ._files import StoredFile, Upload, UploadedFile, file, sign_file
from ._handlers import warm
from ._host import HostError
from ._query import (
    NULL, Aggregation, Change, Condition, Counts, LimitedChange, LimitedRemoval, Lookup, Operation, Page, Removal, Selection, and_, not_, or_,
)
from ._request import BodyError, File, Form, Request
from ._response import (
    Response, abort, bad_request, created, error, forbidden, html, no_content, not_found, ok, redirect, send_file, stream, text, unauthorized,
)
from ._services import (
    ApiKey, ApiKeyPage, Delivery, EnqueuedJob, LiveSession, OpenedSession, PasswordCheck, SessionPage, api_keys, hmac_digest, password,
    sessions, webhooks,
)
from ._typed import aggregate, field, get, handler, insert, jobs, query, remove, update, var
from ._web import asgi, wsgi
from ._values import call

__all__ = [
    "NULL", "Aggregation", "ApiKey", "ApiKeyPage", "Auth", "BodyError", "Change", "Condition", "Context", "Counts", "Delivery", "EnqueuedJob",
    "FetchResponse", "File", "Form", "HostError", "Job", "LimitedChange", "LimitedRemoval", "LiveSession", "Lookup", "OpenedSession", "Operation", "Page",
    "PasswordCheck", "Removal", "Request", "Response", "Selection", "SessionPage", "StoredFile", "Upload", "UploadedFile", "abort", "aggregate", "and_", "api_keys", "asgi",
    "bad_request", "call", "context", "created", "error", "events", "fetch", "field", "file", "forbidden", "get", "handler", "hmac_digest", "html",
    "insert", "jobs", "keep_writes", "no_content", "not_", "not_found", "ok", "or_", "password", "query", "redirect", "remove",
    "secret", "send_file", "sessions", "sign_file", "stream", "text", "unauthorized", "update", "var", "warm", "webhooks", "wsgi",
]
