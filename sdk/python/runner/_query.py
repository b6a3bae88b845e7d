"""Operations on rows, with the authority of the caller."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Callable, Generic, Literal, NoReturn, Self, overload

from . import _host, _values
from ._values import NULL, Record

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    F = TypeVar("F", bound=str, default=Any, covariant=True)
    T = TypeVar("T", default=Any, covariant=True)
    R = TypeVar("R", default=Any)
    L = TypeVar("L", bound="_Limited")
else:
    from typing import TypeVar

    F, T, R, L = map(TypeVar, "FTRL")

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "in", "startsWith", "contains"]


class Condition(Generic[F]):
    """What a row must be like: see field, and_, or_ and not_. F is the fields that it names."""

    __slots__ = ("form",)

    def __init__(self, form: list[Any]) -> None:
        self.form = form


if TYPE_CHECKING:

    def field(name: str, operator: Operator, value: Any, *, ignore_case: bool = False) -> Condition[Any]:
        """Compares a field. With ignore_case, =, startsWith and contains follow the case folding of Unicode.

        None is an error, because it is what a missing value is: to compare with null, write NULL.
        """
        ...
else:

    def field(*given: Any, **named: Any) -> Condition[Any]:
        return _compared("field", given, named)


def _compared(of: str, given: tuple[Any, ...], named: dict[str, Any]) -> Condition[Any]:
    """The condition of the arguments of field or where. Wrong ones are an error that shows the right form."""
    try:
        return _compare(*given, **named)
    except TypeError:
        first = given[0] if given else next(iter(named), None)
        if isinstance(first, Condition):
            form = ".match(…) for a condition of field, and_, or_ or not_"
        else:
            form = f'{of}("{first}", "=", value)' if isinstance(first, str) else f'{of}("total", ">", 10)'
        raise TypeError(f"{of} takes a field's name, an operator and a value: write {form}") from None


def _compare(name: str, operator: Operator, value: Any, *, ignore_case: bool = False) -> Condition[Any]:
    if value is None:
        raise _host.HostError("invalid", f"{name}: the value of {operator} is None{_values.REMEDY}", "query")
    form = [name, operator, None if value is NULL else value]
    if ignore_case:
        form.append("ignoreCase")
    return Condition(form)


def _forms(conditions: tuple[Condition[Any], ...]) -> list[Any]:
    all: list[Any] = []
    for c in conditions:
        _check(c)
        if c.form and not isinstance(c.form[0], str):
            all.extend(c.form)  # those of and_
        else:
            all.append(c.form)
    return all


def _check(condition: Any) -> None:
    if not isinstance(condition, Condition):
        raise TypeError(
            f"a condition is made by field, and_, or_ or not_, and is not a {type(condition).__name__}: "
            'write field("total", ">", 10)'
        )


def and_(*conditions: Condition[F]) -> Condition[F]:
    """Holds when all of the conditions do."""
    return Condition(_forms(conditions))


def or_(*conditions: Condition[F]) -> Condition[F]:
    """Holds when one of the conditions does."""
    for c in conditions:
        _check(c)
    return Condition(["or", *[c.form for c in conditions]])


def not_(condition: Condition[F]) -> Condition[F]:
    """Holds when the condition does not."""
    _check(condition)
    return Condition(["not", condition.form])


class Operation(Generic[T]):
    """What a response can have as its body: the runner then sends the result, a T, without handing it to the handler."""

    __slots__ = ()
    _part = 0  # what response_send_result sends

    def _run(self) -> bytes:
        raise NotImplementedError


class _Unrun:
    """What runs only at the end of its steps. _remedy says what it is, and how it ends."""

    __slots__ = ()
    _remedy = ""

    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            raise TypeError(f"cannot iterate: this {self._remedy}")

        def __getitem__(self, key: Any) -> NoReturn:
            raise TypeError(f"cannot index: this {self._remedy}")

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"there is no .{name}: this {self._remedy}", name=name, obj=self)


class _Filtered(_Unrun):
    __slots__ = ("_args",)
    _args: dict[str, Any]

    def _with(self, **more: Any) -> Self:
        copy = object.__new__(type(self))
        copy._args = {**self._args, **more}
        return copy

    if TYPE_CHECKING:

        def where(self, name: str, operator: Operator, value: Any, *, ignore_case: bool = False) -> Self:
            """One more condition: all must hold."""
            ...
    else:

        def where(self, *given: Any, **named: Any) -> Self:
            return self.match(_compared(".where", given, named))

    def match(self, *conditions: Condition[Any]) -> Self:
        """More conditions, made by field, and_, or_ and not_."""
        return self._with(where=[*self._args.get("where", ()), *_forms(conditions)])


class Counts(Record):
    """The result of an operation with a limit: the number of rows, and whether other rows match."""

    count: int
    more: bool


def _whole(name: str, n: Any, operation: str) -> int:
    if isinstance(n, bool) or not isinstance(n, int):
        raise _host.HostError("invalid", f"{name}: {n!r} is not a whole number", operation)
    return n


class Page(Record, Generic[R]):
    """A page of rows. next_cursor leads to the next one; it is None on the last."""

    rows: list[R]
    next_cursor: str | None


class Selection(_Filtered, Operation[list[R]], Generic[R]):
    """A query over the rows R of an entity that the caller may read. Each step gives a new one."""

    __slots__ = ()
    _remedy = "is a query, which has not run: end it with .rows(), .first() or .count()"
    _part = 1

    def __init__(self, entity: str) -> None:
        self._args = {"from": entity}

    def select(self, *fields: str) -> Self:
        """The fields of the rows; without it all that the caller may read."""
        return self._with(select=[*self._args.get("select", ()), *fields])

    def order_by(self, name: str, direction: Literal["asc", "desc"] = "asc") -> Self:
        """The order of the rows; a second one orders what is equal in the first."""
        return self._with(orderBy=[*self._args.get("orderBy", ()), [name, direction]])

    def limit(self, n: int) -> Self:
        """The maximum number of rows, 1 to 1,000; by default 100."""
        return self._with(limit=_whole("limit", n, "query"))

    def after(self, cursor: str | None) -> Self:
        """The rows behind a cursor: next_cursor of the page before. Without one it is the first page."""
        return self._with(cursor=cursor) if cursor else self

    def include(self, relation: str, *fields: str, query: Callable[[Any], Selection[Any]] | None = None) -> Selection[Any]:
        """Includes the row of a to-one relation in place of its id, or the rows of a to-many relation.

        query chooses the included rows: include("lines", query=lambda q: q.limit(20)).
        """
        return self._with(include={**self._args.get("include", {}), relation: _included(relation, fields, query)})

    def _run(self) -> bytes:
        return _host.operate("query", _values.arguments("query", self._args))

    def _result(self) -> dict[str, Any]:
        return _values.call("query", self._args)

    def rows(self) -> list[R]:
        """The rows, at most the limit."""
        return _values.rows(self._args["from"], self._result()["rows"])

    def page(self) -> Page[R]:
        """The rows, with the cursor of the next page."""
        result = self._result()
        return Page(_values.rows(self._args["from"], result["rows"]), result["nextCursor"])

    def first(self) -> R | None:
        """The first row, or None."""
        rows = self.limit(1).rows()
        return rows[0] if rows else None

    def first_or_fail(self) -> R:
        """The first row. If no row matches, it raises an error with the code not_found; uncaught, it is answered 404."""
        row = self.first()
        if row is None:
            raise _host.HostError("not_found", f"no row of {self._args['from']} matches the conditions", "query", self._args["from"])
        return row

    @overload
    def count(self) -> int: ...
    @overload
    def count(self, *, at_most: int) -> Counts: ...
    def count(self, *, at_most: int | None = None) -> int | Counts:
        """The number of rows, without regard to the limit.

        With at_most it stops at that number, 1 to 1,000,000, and returns whether there are more.
        """
        args = {name: self._args[name] for name in ("from", "where") if name in self._args}
        if at_most is None:
            return _values.call("count", args)["count"]
        result = _values.call("count", {**args, "atMost": _whole("at_most", at_most, "count")})
        return Counts(result["count"], result["more"])

    def as_page(self) -> Operation[Any]:
        """The rows with their cursor, as the body of a response."""
        return _Sent(self)

    def as_first(self) -> Operation[R]:
        """The first row, as the body of a response. If no row matches, the answer is 404."""
        return _First(self.limit(1))


class _Sent(Operation[Any]):
    __slots__ = ("_of",)

    def __init__(self, of: Selection[Any]) -> None:
        self._of = of

    def _run(self) -> bytes:
        return self._of._run()


class _First(_Sent):
    __slots__ = ()
    _part = 2

    def _run(self) -> bytes:
        result = self._of._run()
        if not json.loads(result)["rows"]:
            raise _host.HostError("not_found", f"no row of {self._of._args['from']} matches the conditions", "query", self._of._args["from"])
        return result


def _included(relation: str, fields: tuple[str, ...], query: Callable[[Any], Selection[Any]] | None) -> dict[str, Any]:
    if query is None:
        return {"select": list(fields)} if fields else {}
    chosen = query(Selection("").select(*fields) if fields else Selection(""))
    if not isinstance(chosen, Selection):
        raise _host.HostError("invalid", f"include({relation!r}): query returns no query: write lambda q: q.limit(20)", "query")
    return {name: value for name, value in chosen._args.items() if name != "from"}


def query(entity: str) -> Selection[Any]:
    """Begins a query: query("Order").where("total", ">", 10).limit(20).rows()."""
    return Selection(entity)


class Lookup(_Unrun, Operation[R], Generic[R]):
    """One row by its id."""

    __slots__ = ("_args",)
    _part = 2
    _remedy = "is a get, which has not run: end it with .row()"

    def __init__(self, args: dict[str, Any]) -> None:
        self._args = args

    def include(self, relation: str, *fields: str, query: Callable[[Any], Selection[Any]] | None = None) -> Lookup[Any]:
        """Includes the rows of a relation, as in a query."""
        return Lookup({**self._args, "include": {**self._args.get("include", {}), relation: _included(relation, fields, query)}})

    def _run(self) -> bytes:
        return _host.operate("get", _values.arguments("get", self._args))

    def row(self) -> R:
        """The row. One that does not exist and one that the caller may not read are the same error, not_found."""
        return _values.rows(self._args["from"], [_values.call("get", self._args)["row"]])[0]

    def row_or_none(self) -> R | None:
        """The row, or None if it does not exist or the caller may not read it."""
        try:
            return self.row()
        except _host.HostError as error:
            if error.code == "not_found":
                return None
            raise


def get(entity: str, id: str, *fields: str) -> Lookup[Any]:
    """One row by its id: get("Order", id).row(), or ok(get("Order", id))."""
    if id is None:
        raise _host.HostError("invalid", f"get: the id of {entity} is None", "get")
    return Lookup({"from": entity, "id": id, "select": list(fields)} if fields else {"from": entity, "id": id})


class Aggregation(_Filtered, Operation[list[R]], Generic[R]):
    """Computes groups R over the rows of an entity that the caller may read."""

    __slots__ = ()
    _remedy = "is an aggregate, which has not run: end it with .groups()"
    _part = 1

    def __init__(self, entity: str) -> None:
        self._args = {"from": entity}

    def _of(self, what: str, fields: tuple[str, ...]) -> Self:
        return self._with(**{what: [*self._args.get(what, ()), *fields]})

    def group_by(self, *fields: str) -> Self:
        """The fields, at most two, that are equal in a group."""
        return self._of("groupBy", fields)

    def group_by_time(self, name: str, period: Literal["day", "week", "month"], zone: str | None = None) -> Self:
        """The day, week or month of a time, in a time zone such as "Europe/Berlin"; without one in UTC.

        The group has its first day as a date. Weeks begin on Monday. A date has no time zone.
        """
        by = [name, period] if zone is None else [name, period, zone]
        return self._with(groupBy=[*self._args.get("groupBy", ()), by])

    def sum(self, *fields: str) -> Self:
        return self._of("sum", fields)

    def avg(self, *fields: str) -> Self:
        return self._of("avg", fields)

    def min(self, *fields: str) -> Self:
        return self._of("min", fields)

    def max(self, *fields: str) -> Self:
        return self._of("max", fields)

    def count(self) -> Self:
        """The number of rows."""
        return self._with(count=True)

    def _run(self) -> bytes:
        return _host.operate("aggregate", _values.arguments("aggregate", self._args))

    def groups(self) -> list[R]:
        """The groups, ordered by their fields; without group_by one."""
        entity = self._args["from"]
        days = {by[0] for by in self._args.get("groupBy", ()) if isinstance(by, list)}
        return [_values.group(entity, group, days) for group in _values.call("aggregate", self._args)["rows"]]


def aggregate(entity: str) -> Aggregation[Any]:
    """Begins a computation over rows: aggregate("Order").group_by("status").sum("total").count().groups()."""
    return Aggregation(entity)


def insert(entity: str, values: Any) -> Any:
    """Inserts a row, or a list of at most 1,000, and returns it as it is then, or them. An absent field has its default."""
    rows = _values.rows(entity, _values.call("insert", {"into": entity, "values": values})["rows"])
    return rows if isinstance(values, (list, tuple)) else rows[0]


# The changes of this request that have not run: they are logged at its end.
waiting: dict[int, "_Changing | _Limited"] = {}


class _Changing(_Filtered):
    __slots__ = ("_all",)
    _op = ""
    _entity = ""

    def _with(self, **more: Any) -> Self:
        copy = super()._with(**more)
        copy._all = self._all
        if waiting.pop(id(self), None) is not None:
            waiting[id(copy)] = copy
        return copy

    def every(self) -> Self:
        """Says that all rows are meant. Without a condition a change is an error otherwise."""
        copy = self._with()
        copy._all = True
        return copy

    def _change(self) -> dict[str, Any]:
        waiting.pop(id(self), None)
        args = self._args
        if "where" not in args and self._all:
            args = {**args, "where": []}
        return _values.call(self._op, args)

    def _limited(self, to: type[L], n: int) -> L:
        copy = self._with(limit=_whole("limit", n, self._op))
        limited = to(copy)
        if waiting.pop(id(copy), None) is not None:
            waiting[id(limited)] = limited
        return limited

    def run(self) -> int:
        """Executes it, and returns the number of rows."""
        return self._change()["count"]


class _Limited(_Unrun):
    __slots__ = ("_of",)

    def __init__(self, of: _Changing) -> None:
        self._of = of

    def _change(self) -> dict[str, Any]:
        waiting.pop(id(self), None)
        return self._of._change()

    def run(self) -> Counts:
        """Executes it, and returns the number of rows and whether other rows match."""
        result = self._change()
        return Counts(result["count"], result["more"])

    def __str__(self) -> str:
        return str(self._of)


class LimitedChange(_Limited, Generic[R]):
    """A change with a limit. run() or rows() executes it."""

    __slots__ = ()
    _remedy = "is an update with a limit, which has not run: call .limit(…) last, and end it with .run() or .rows()"

    def rows(self) -> list[R]:
        """Executes it, and returns the changed rows."""
        return _values.rows(self._of._args["in"], self._change()["rows"])


class LimitedRemoval(_Limited):
    """A removal with a limit. run() executes it."""

    __slots__ = ()
    _remedy = "is a removal with a limit, which has not run: call .limit(…) last, and end it with .run()"


class Change(_Changing, Generic[R]):
    """A change of rows. run() or rows() does it."""

    __slots__ = ()
    _remedy = "is an update, which has not run: end it with .run() or .rows()"
    _op = "update"

    def __init__(self, entity: str, set: Any) -> None:
        self._args = {"in": entity, "set": set}
        self._all = False
        waiting[id(self)] = self

    def limit(self, n: int) -> LimitedChange[R]:
        """Changes at most n rows, 1 to 1,000. run() then returns whether other rows match."""
        return self._limited(LimitedChange, n)

    def rows(self) -> list[R]:
        """Executes it, and returns the changed rows."""
        return _values.rows(self._args["in"], self._change()["rows"])

    def __str__(self) -> str:
        return f"an update of {self._args['in']}"


class Removal(_Changing):
    """A removal of rows. run() does it."""

    __slots__ = ()
    _remedy = "is a removal, which has not run: end it with .run()"
    _op = "delete"

    def __init__(self, entity: str) -> None:
        self._args = {"from": entity}
        self._all = False
        waiting[id(self)] = self

    def limit(self, n: int) -> LimitedRemoval:
        """Changes at most n rows, 1 to 1,000. run() then returns whether other rows match."""
        return self._limited(LimitedRemoval, n)

    def __str__(self) -> str:
        return f"a removal from {self._args['from']}"


def update(entity: str, set: Any) -> Change[Any]:
    """Sets fields of rows: update("Order", {"status": "paid"}).where("id", "=", id).run()."""
    return Change(entity, set)


def remove(entity: str) -> Removal:
    """Deletes rows: remove("Order").where("id", "=", id).run()."""
    return Removal(entity)
