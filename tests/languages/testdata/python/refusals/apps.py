"""Operations that fail, and abort, in views of frameworks."""

import asyncio

import bottle
from flask import Flask
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from runner import HostError, Request, abort, asgi, handler, insert, not_found, query, secret, wsgi


def fail(what):
    if what == "denied":
        query("Secret").rows()
    if what == "conflict":
        insert("Order", {"number": 1})
        insert("Order", {"number": 1})
    if what == "abort":
        try:
            abort(not_found("no such order"))
        except Exception:
            return "caught"
    if what == "secret":
        secret("NONE")
    if what == "another":
        try:
            query("Secret").rows()
        except HostError:
            pass
        raise ValueError("another")
    if what == "own":
        try:
            query("Secret").rows()
        except HostError:
            return None
    return "ok"


flask_app = Flask("refusals")
handled_app = Flask("handled")
bottle_app = bottle.Bottle()


@flask_app.get("/<what>")
def in_flask_app(what):
    return fail(what) or ("own page", 500)


@handled_app.get("/<what>")
def in_handled_app(what):
    return fail(what)


@handled_app.errorhandler(HostError)
def refused(error):
    return f"refused: {error.code}", 422


@bottle_app.get("/<what>")
def in_bottle_app(what):
    return fail(what) or bottle.HTTPResponse("own page", 500)


def in_starlette_app(request):
    text = fail(request.path_params["what"])
    return PlainTextResponse(text or "own page", 200 if text else 500)


in_flask = wsgi(flask_app)
in_handled = wsgi(handled_app)
in_bottle = wsgi(bottle_app)
in_starlette = asgi(Starlette(routes=[Route("/{what}", in_starlette_app)]))


@handler
async def in_a_group(req: Request):
    async def work():
        fail(req.params["what"])

    async with asyncio.TaskGroup() as group:
        group.create_task(work())
        group.create_task(asyncio.sleep(60))
