"""Answers in parts. Between two parts the handler waits for a mark, which the client makes when it has read the one before."""

import asyncio
import dataclasses
import decimal
import time
from datetime import datetime, timezone

from flask import Flask, Response, request, stream_with_context
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from runner import (
    Request, abort, asgi, bad_request, created, events, handler, insert, jobs, no_content, not_found, ok, query, stream, update, wsgi,
)


def wait_for(name):
    while not query("Mark").where("name", "=", name).count():
        time.sleep(0.01)


async def async_wait_for(name):
    while not query("Mark").where("name", "=", name).count():
        await asyncio.sleep(0.01)


def three(client):
    """Three parts. It leaves a mark when it has ended."""
    try:
        yield "1"
        wait_for(client + "2")
        yield "2"
        wait_for(client + "3")
        yield "3"
    finally:
        insert("Mark", {"name": client + "end"})


async def async_three(client):
    try:
        yield "1"
        await async_wait_for(client + "2")
        yield "2"
        await async_wait_for(client + "3")
        yield "3"
    finally:
        insert("Mark", {"name": client + "end"})


@handler
def mark(req: Request):
    return created(insert("Mark", {"name": req.params["name"]}))


@handler
def marks(req: Request):
    return query("Mark").order_by("name").select("name")


@handler
def parts(req: Request):
    yield from three(req.query["client"])


@handler
async def parts_async(req: Request):
    async for part in async_three(req.query["client"]):
        yield part


@handler
async def parts_queue(req: Request):
    """A task of the handler makes the parts."""
    queue = asyncio.Queue()

    async def produce():
        async for part in async_three(req.query["client"]):
            await queue.put(part)
        await queue.put(None)

    async def consume():
        while (part := await queue.get()) is not None:
            yield part

    task = asyncio.create_task(produce())
    return stream(consume(), headers={"X-Task": task.get_name()[:4]})


@handler
def parts_csv(req: Request):
    return stream(three(req.query["client"]), type="text/csv", status=201, headers=[("x-made-by", "stream")])


flask_app = Flask("streams")


@flask_app.get("/parts")
def flask_parts():
    def generate():
        yield from three(request.args["client"])

    return Response(stream_with_context(generate()), mimetype="text/plain")


@flask_app.get("/forever")
def flask_forever():
    return Response(forever_text("flask"))


@flask_app.get("/fails")
def flask_fails():
    return Response(failing())


@flask_app.get("/whole")
def flask_whole():
    return "whole"


def write_app(environ, start_response):
    """Writes two parts, and returns the last."""
    write = start_response("200 OK", [("content-type", "text/plain")])
    client = environ["QUERY_STRING"].removeprefix("client=")
    all = three(client)
    write(next(all).encode())
    write(next(all).encode())
    return [part.encode() for part in all]


class Unsized:
    """A response as Django has it, which says that it is whole."""

    streaming = False

    def __iter__(self):
        return iter([b"a", b"bc"])


def sized_app(environ, start_response):
    """Answers as a whole: an iterator whose length is known, and a response that says so."""
    if environ["PATH_INFO"] == "/unsized":
        start_response("200 OK", [("content-type", "text/plain")])
        return Unsized()
    start_response("200 OK", [("content-type", "text/plain"), ("content-length", "3")])
    return iter([b"a", b"", b"bc"])


async def raw_asgi(scope, receive, send):
    await receive()
    client = scope["query_string"].decode().removeprefix("client=")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    if scope["path"].endswith("/forever"):
        gone = asyncio.create_task(receive())
        while not gone.done():
            try:
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            except OSError:
                await asyncio.sleep(0)
        insert("Mark", {"name": gone.result()["type"]})
        return
    async for part in async_three(client):
        await send({"type": "http.response.body", "body": part.encode(), "more_body": True})
    await send({"type": "http.response.body"})


async def star_parts(request):
    return StreamingResponse(async_three(request.query_params["client"]), media_type="text/plain")


async def star_forever(request):
    async def generate():
        try:
            while True:
                yield b"x" * 65536
                await asyncio.sleep(0)
        finally:
            insert("Mark", {"name": "starlette"})

    return StreamingResponse(generate())


async def star_whole(request):
    return PlainTextResponse("whole")


in_flask = wsgi(flask_app, warm="/whole")
in_write = wsgi(write_app)
in_sized = wsgi(sized_app)
in_asgi = asgi(raw_asgi)
in_starlette = asgi(Starlette(routes=[Route("/parts", star_parts), Route("/forever", star_forever), Route("/whole", star_whole)]), warm="/whole")


def forever_text(name):
    try:
        while True:
            yield "x" * 65536
    finally:
        insert("Mark", {"name": name})


@handler
def forever(req: Request):
    return stream(forever_text("handler"))


@handler
async def forever_async(req: Request):
    async def inside():
        try:
            while True:
                yield b"x" * 65536
        finally:
            await asyncio.sleep(0)
            insert("Mark", {"name": "async"})

    async for part in inside():
        yield part


@handler
def large(req: Request):
    """Parts of some megabytes, which do not use the budget of what else the handler does."""
    for _ in range(int(req.query["megabytes"]) // 5):
        yield b"x" * (5 << 20)
        query("Mark").rows()


@handler
def lines(req: Request):
    for n in range(int(req.query["n"])):
        yield f"{n}\n"
    query("Mark").rows()


def failing(name="before"):
    insert("Mark", {"name": name})
    yield "a part"
    insert("Mark", {"name": name.replace("before", "after")})
    raise ValueError("the rest is missing")


@handler
def fails(req: Request):
    match req.params["what"]:
        case "later":
            return failing()
        case "events":
            return events(failing("events before"))
        case "abort":
            return late_abort()
        case "denied":
            return refused_later()
        case "part":
            return ok(iter_of(1))
        case "unknown":
            return events([{"id": "1", "name": "x"}])
        case "status":
            return stream(["a"], status=204)
        case "aborted":
            abort(stream(async_three("aborted")))
        case "iterator":
            return iter([1])


def iter_of(item):
    yield item


def late_abort():
    yield ""
    abort(not_found("too late"))


def refused_later():
    yield "a part"
    query("Secret").rows()


@handler
def early(req: Request):
    """Ends before its first part."""
    insert("Mark", {"name": "discarded"})
    if req.params["what"] == "abort":
        abort(bad_request("no parts"))
    if req.params["what"] == "absent":
        query("Mark").where("name", "=", "none").first_or_fail()
    if req.params["what"] == "empty":
        return
    yield "never"


@handler
def counts(req: Request):
    """Changes a row before its answer begins, as others do at the same time."""
    row = query("Counter").first_or_fail()
    update("Counter", {"n": row["n"] + 1}).where("id", "=", row["id"]).run()
    yield str(row["n"] + 1)
    yield ""


@handler
def counter(req: Request):
    row = query("Counter").first()
    return row["n"] if row else insert("Counter", {"n": 0})["n"]


@dataclasses.dataclass
class Change:
    data: object
    event: str = "change"
    retry: int | None = None


@handler
def feed(req: Request):
    return events([
        "one\ntwo\r\nthree\rfour\u2028five", {"event": "order", "id": 7, "data": {"n": decimal.Decimal("1.50"), "é": None}},
        {"data": datetime(2026, 1, 2, tzinfo=timezone.utc)}, {}, Change([1, "a\nb"]), Change("", retry=1500), {"id": ""}, {"data": None},
    ], headers={"x-feed": "1"})


@handler
def bad_event(req: Request):
    item = {
        "event": {"event": "a\rb"}, "id": {"id": "a\nb"}, "nul": {"id": "\0"}, "retry": {"retry": "1"}, "type": 5, "number": {"event": 1},
        "set": {"data": {1}},
    }[req.params["what"]]
    return events([item])


@handler
def starts_job(req: Request):
    jobs.enqueue("inParts")
    return no_content()


@handler
def in_parts(req: Request):
    insert("Mark", {"name": "job"})
    yield "a"
    insert("Mark", {"name": "job later"})
    yield "b"
