"""The types of the app's schema, for annotations: from runner.schema import Order.

`runner generate types` writes them beside this file, in schema.pyi. In a handler that runs they are all dict, so that
Order(number="A-1") makes what its type says.
"""

from typing import Any

RoleName = ScopeName = SecretName = str


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return dict
