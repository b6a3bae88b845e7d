"""Answers that are refused, and those of operations that fail."""

import asyncio
import sys
from typing import NamedTuple

from runner import Request, api_keys, bad_request, context, get, handler, jobs, ok, password, query


@handler
def headers(req: Request):
    """Each answer has a header that must not be on the answer of an error."""
    shared = {
        "refused": ok(1),
        "body": ok({1}),
        "denied": ok(query("Secret")),
        "absent": ok(get("Order", "01jd8e2g7cq1qjz1h6y2x3v4w5")),
        "first": ok(query("Order").as_first()),
        "rows": ok(query("Order")),
    }[req.params["what"]].with_header("cache-control", "public, max-age=3600")
    return shared.with_header("date", "x") if req.params["what"] == "refused" else shared


@handler
async def leaves(req: Request):
    """Leaves a task that goes on when it is cancelled."""

    async def goes_on():
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass

    async def cleans_up():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            print("cleaned up")

    tasks = [asyncio.create_task(goes_on()), asyncio.create_task(cleans_up())]
    await asyncio.sleep(0)
    return len(tasks)


@handler
def texts(req: Request):
    """Texts that are too long, or that look like something else."""
    match req.params["what"]:
        case "frames":
            raise ValueError("no\n    at false (handlers/false.py:1:1)\nat /etc/passwd:7\nend")
        case "long":
            raise LongError("x" * 10_000_000)
        case "exits":
            raise ExitError
        case "type":
            return bad_request(ValueError("no text"))
        case "print":
            print("surrogate \ud800")
            raise ValueError("printed")
        case "detail":
            return bad_request("é" * 5000)
        case "field":
            return len(req.form().fields)


@handler
async def connects(req: Request):
    """Clients of asyncio, which have no sockets and no processes."""
    errors = []
    for attempt in (asyncio.open_connection("localhost", 80), asyncio.create_subprocess_exec("ls")):
        try:
            await attempt
        except OSError as error:
            errors.append(str(error))
    return errors


@handler
def streams(req: Request):
    """Takes away the streams that print uses."""
    print("kept", end="")
    match req.params["what"]:
        case "none":
            sys.stdout = sys.stderr = None
        case "closed":
            sys.stderr.close()
            sys.stdout.close()
        case "other":
            sys.stdout = object()
    return ok(1)


@handler
def records(req: Request):
    """Values of the SDK."""
    page = api_keys.page()
    return {
        "key": api_keys.create("reader", name="n", expires_in=60), "page": page, "auth": context().auth,
        "check": password.verify("x", None), "rows": query("Order").page(), "job": jobs.enqueue("work"),
        "file": req.form().file("f"), "own": [Own(1, 2)], "equal": page == api_keys.page(),
    }


@handler
def work(req: Request):
    pass


class LongError(Exception):
    pass


class ExitError(Exception):
    def __str__(self):
        sys.exit(4)


class Own(NamedTuple):
    """A tuple of the app, which is a list as it is for the module json."""

    a: int
    b: int
