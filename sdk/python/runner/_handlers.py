"""The functions that serve requests."""

from __future__ import annotations

from typing import Any, Callable, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])

# The handlers by their names, and the functions to run before the first request.
functions: dict[str, Callable[..., Any]] = {}
warm_ups: list[Callable[[], Any]] = []


@overload
def handler(function: F, /) -> F: ...
@overload
def handler(name: str, /) -> Callable[[F], F]: ...
def handler(given: Any, /) -> Any:
    """Makes a function a handler with its name, or with another one: @handler("listOrders").

    The schema may write the name of a function list_orders as listOrders too.
    """
    if isinstance(given, str):
        return lambda function: _add(given, function)
    return _add(given.__name__, given)


def _add(name: str, function: F) -> F:
    if not (name.isascii() and name.isidentifier()):  # a line end would move the names behind it to other functions
        raise ValueError(f"{name!r} is not a name for the handler in {_place(function)}: letters, digits and _")
    first = functions.get(name)
    if first is not None:
        raise ValueError(f"handler {name} is defined twice: in {_place(first)} and in {_place(function)}")
    _check(name, function)
    functions[name] = function
    return function


def _check(name: str, function: Any) -> None:
    """Refuses a function that cannot be called with a request."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    if code.co_argcount == 0 and not code.co_flags & 0x04:  # CO_VARARGS of the module inspect
        raise TypeError(f"handler {name} in {_place(function)} takes no parameter: it is called with the request, as in def {name}(req)")


def _place(function: Any) -> str:
    import inspect

    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename.removeprefix('/app/')}:{code.co_firstlineno}" if code else type(function).__name__


def described(function: Any) -> str:
    """A handler with its place, for errors."""
    return f"handler {getattr(function, '__name__', type(function).__name__)} ({_place(function)})"


def warm(function: F) -> F:
    """Runs a function once, after the imports. What it leaves in memory is there in every request.

    There is no request then: operations and fetches are denied.
    """
    warm_ups.append(function)
    return function


def camel(name: str) -> str:
    """list_orders as listOrders."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def named(known: list[str]) -> dict[str, Callable[..., Any]]:
    """The handlers with the names that the schema has for them."""
    names: dict[str, str] = {}  # in Python, by those in the schema
    for name in functions:
        other = camel(name)
        served = other if name not in known and other in known and other not in functions else name
        first = names.setdefault(served, name)
        if first != name:
            raise ValueError(
                f"handler {served} is defined twice: as {first} in {_place(functions[first])} and as {name} in {_place(functions[name])}"
            )
    return {served: functions[name] for served, name in names.items()}
