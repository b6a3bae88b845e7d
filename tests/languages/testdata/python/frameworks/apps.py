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


@first.get("/url")
def url():
    return bottle.request.url


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
        "url": str(request.url), "path": request.url.path, "q": request.query_params.getlist("q"), "started": started, "item": str(request.url_for("item", id=3).path),
    })


async def item(request):
    return PlainTextResponse(f"{request.path_params['id']} {len(await request.body())}")


def in_a_thread(request):
    return PlainTextResponse("done at once")


def broken(request):
    raise ValueError("broken")


def page_of_errors(request, error):
    return PlainTextResponse(f"a page about {error}", 500)


second = Starlette(
    routes=[Route("/broken", broken), Route("/", home), Route("/item/{id:int}", item, name="item", methods=["POST"]), Route("/thread", in_a_thread)],
    on_startup=[start],
    exception_handlers={500: page_of_errors},
)
in_bottle = wsgi(first)
in_starlette = asgi(second, warm="/thread")


def header(environ, start_response):
    """PEP 3333: the characters of headers are bytes."""
    value = environ["HTTP_COOKIE"].encode("latin-1").decode()
    start_response("200 OK", [("content-type", "text/plain"), ("x-value", value.encode().decode("latin-1"))])
    return [value.encode()]


async def half(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})


in_header = wsgi(header)
in_half = asgi(half)
