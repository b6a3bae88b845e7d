"""Handlers that return what cannot be sent."""

import functools

from runner import Request, abort, get, handler, no_content, not_found, ok, query, update


class Thing:
    pass


@handler
def returns(req: Request):
    what = req.params["what"]
    if what == "tuple":
        return {"a": 1}, 201
    if what == "object":
        return Thing()
    if what == "field":
        return ok({"orders": [{"thing": Thing()}]})
    if what == "query":
        return ok({"orders": query("Order")})
    if what == "get":
        return {"order": get("Order", "x")}
    if what == "update":
        return update("Order", {"number": 1}).where("id", "=", "x")
    if what == "helper":
        return no_content
    if what == "answer":
        return ok(not_found())
    if what == "abort":
        abort(ok(Thing()))


def logged(function):
    @functools.wraps(function)
    def inner(req):
        return function(req)

    return inner


@handler
@logged
def decorated(req: Request):
    pass


@handler
async def waits(req: Request):
    return 1, 2
