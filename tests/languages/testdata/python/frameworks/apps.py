"""Applications in Bottle and Starlette."""

import asyncio

import bottle
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from runner import asgi, wsgi

first = bottle.Bottle()


@first.get("/hello/<name>")
def hello(name):
    return bottle.template("hello {{name}}", name=name)


@first.post("/upload")
def upload():
    f = bottle.request.files.get("file")
    return {"name": f.filename, "bytes": len(f.file.read())}


started = []


async def start():
    started.append(len(started))


async def home(request):
    await asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0.01))
    return JSONResponse({
        "path": request.url.path, "q": request.query_params.getlist("q"), "started": started, "item": str(request.url_for("item", id=3).path),
    })


async def item(request):
    return PlainTextResponse(f"{request.path_params['id']} {len(await request.body())}")


def in_a_thread(request):
    return PlainTextResponse("done at once")


second = Starlette(
    routes=[Route("/", home), Route("/item/{id:int}", item, name="item", methods=["POST"]), Route("/thread", in_a_thread)],
    on_startup=[start],
)
in_bottle = wsgi(first)
in_starlette = asgi(second, warm="/thread")
