"""Forms of a query that other libraries have."""

from runner import Request, aggregate, and_, field, get, handler, not_, or_, query, remove, update


@handler
def queries(req: Request):
    orders = query("Order")
    tries = {
        "keyword": lambda: orders.where(number=1),
        "one": lambda: orders.where("number"),
        "two": lambda: orders.where("number", 1),
        "four": lambda: orders.where("number", "=", 1, 2),
        "dict": lambda: orders.where({"number": 1}),
        "bool": lambda: orders.where(1 > 2),
        "condition": lambda: orders.where(field("number", "=", 1)),
        "field": lambda: field(number=1),
        "match": lambda: orders.match("number", "=", 1),
        "and": lambda: and_("number", "=", 1),
        "or": lambda: or_(("number", "=", 1)),
        "not": lambda: not_(True),
        "for": lambda: [order for order in orders],
        "list": lambda: list(get("Order", "x")),
        "groups": lambda: list(aggregate("Order").count()),
        "changed": lambda: list(update("Order", {"number": 2}).where("number", "=", 1)),
        "first": lambda: orders[0],
        "member": lambda: get("Order", "x")["number"],
        "all": lambda: orders.all(),
        "execute": lambda: remove("Order").execute(),
        "names": lambda: orders.where(name="number", operator="=", value=1, ignore_case=False).rows(),
        "copied": lambda: bool(orders) and not hasattr(orders, "all"),
    }
    errors = {}
    for name, attempt in tries.items():
        try:
            errors[name] = repr(attempt())
        except Exception as error:
            errors[name] = f"{type(error).__name__}: {error}"
    return errors
