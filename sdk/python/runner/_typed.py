"""What the app's schema decides the types of. `runner generate types` writes them beside this file, in _typed.pyi."""

from ._context import var
from ._handlers import handler
from ._query import aggregate, field, get, insert, query, remove, update
from ._services import jobs

__all__ = ["aggregate", "field", "get", "handler", "insert", "jobs", "query", "remove", "update", "var"]
