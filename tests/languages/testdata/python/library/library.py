"""What of Python's library, and of packages for HTTP, works in another way in a handler."""

import _thread
import asyncio
import concurrent.futures
import copy
import datetime
import hashlib
import http.client
import logging
import os
import random
import secrets
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import types
import urllib.request
import uuid
import warnings
import zoneinfo

import requests

import runner
from runner import Request, aio, handler, ok

made_in_the_start = random.random()


@handler
def http_clients(req: Request):
    service = req.query["service"]
    answer = requests.post(service + "/b", json={"a": 1}, headers={"x-a": "z"}, timeout=3)
    session = requests.Session()
    moved = session.get(service + "/moved")
    connection = http.client.HTTPConnection(service.split("//")[1])
    connection.request("PUT", "/c", body=iter([b"\x00", b"\xff"]), headers={"content-type": "application/octet-stream"})
    try:
        requests.get("https://elsewhere.example/x")
        refused = ""
    except requests.ConnectionError as error:
        refused = str(error)
    try:
        requests.get(service + "/x", headers={"host": "elsewhere.example"})
        other = ""
    except requests.ConnectionError as error:
        other = str(error)
    return {
        "other": "the name of another host" in other,
        "url in query": urllib.request.urlopen(service + "/a?to=http://b.example/c").read().decode(),
        "urllib": urllib.request.urlopen(service + "/a?x=1").read().decode(),
        "requests": [answer.status_code, answer.text],
        "moved": [len(moved.history), moved.text],
        "http.client": connection.getresponse().read().decode(),
        "fetch": runner.fetch(service + "/d").text(),
        "refused": "is not declared" in refused or "not one of" in refused or "outbound" in refused,
    }


@handler
async def side_by_side(req: Request):
    service = req.query["service"]
    all = await asyncio.gather(*[aio.fetch(f"{service}/wait") for _ in range(4)], asyncio.to_thread(lambda: 7))
    return [r.status if isinstance(r, runner.FetchResponse) else r for r in all]


@handler
def derived(req: Request):
    return {
        "pbkdf2": hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 1000).hex(),
        "scrypt": hashlib.scrypt(b"password", salt=b"NaCl", n=1024, r=8, p=16, dklen=32).hex(),
    }


@handler
def drawn(req: Request):
    return [
        random.random(), str(uuid.uuid4()), str(uuid.uuid1()), secrets.token_hex(8), next(tempfile._get_candidate_names()),
        os.urandom(8).hex(), random.Random().random(),
    ]


@handler
def logged(req: Request):
    print("printed")
    print("to stderr", file=sys.stderr)
    logging.getLogger("shop").warning("careful %d", 1)
    logging.info("told")
    warnings.warn("old")
    return ok()


@handler
def absent(req: Request):
    def raw():
        connection = socket.create_connection(("localhost", 6379))
        connection.sendall(b"PING\r\n")
        return connection.recv(10)

    tries = {
        "thread": lambda: threading.Thread(target=print).start(),
        "listen": lambda: socket.socket().bind(("", 80)),
        "datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "raw": raw,
        "process": lambda: subprocess.run(["ls"]),
        "popen": lambda: os.popen("ls"),
        "system": lambda: os.system("ls"),
        "fork": lambda: os.fork(),
        "exec": lambda: os.execv("/bin/ls", ["ls"]),
        "low thread": lambda: _thread.start_new_thread(print, ()),
        "timer": lambda: threading.Timer(1, print).start(),
        "name": lambda: socket.gethostbyname("a.example"),
        "pool": lambda: concurrent.futures.ProcessPoolExecutor(),
        "asks": lambda: hasattr(os, "fork") or os.nothing,
        "multiprocessing": lambda: __import__("multiprocessing"),
        "ctypes": lambda: __import__("ctypes"),
        "write": lambda: open("/app/x", "w"),
    }
    errors = {}
    for name, attempt in tries.items():
        try:
            attempt()
            errors[name] = "nothing"
        except Exception as error:
            errors[name] = f"{type(error).__name__}: {error}"
    return errors


@handler
def present(req: Request):
    berlin = datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        squares = list(pool.map(lambda n: n * n, range(4)))
    return {
        "offset": str(berlin.utcoffset()), "squares": squares, "sqlite": sqlite3.connect(":memory:").execute("select 6 * 7").fetchone()[0],
    }


def deep(n):
    return [deep(n + 1)]


@handler
def fails(req: Request):
    match req.params["how"]:
        case "recursion":
            return deep(0)
        case "json":
            nested = []
            for _ in range(100_000):
                nested = [nested]
            return nested
        case "repr":
            nested = []
            for _ in range(100_000):
                nested = [nested]
            return repr(nested)
        case "copy":
            nested = []
            for _ in range(100_000):
                nested = [nested]
            return copy.deepcopy(nested)
        case "frames":
            trace, frame = None, sys._getframe()
            for _ in range(200_000):
                trace = types.TracebackType(trace, frame, frame.f_lasti, frame.f_lineno)
            raise ValueError("many frames").with_traceback(trace)
        case "memory":
            kept = []
            while True:
                kept.append("x" * 1_000_000)
        case "exit":
            sys.exit(3)
        case "chain":
            try:
                {}["x"]
            except KeyError as error:
                raise ValueError("no order") from error
        case "forgotten":
            runner.update("Order", {"number": 1}).where("number", "=", 2)
            return ok()
    return ok()


@handler
def values(req: Request):
    tries = {
        "none": lambda: runner.query("Order").where("number", "=", None),
        "nan": lambda: runner.query("Order").where("number", ">", float("nan")).rows(),
        "naive": lambda: runner.insert("Order", {"number": 1, "total": 1, "at": datetime.datetime(2026, 1, 1)}),
        "set": lambda: runner.insert("Order", {"number": {1}, "total": 1}),
        "answer": lambda: None,
    }
    errors = {}
    for name, attempt in tries.items():
        try:
            attempt()
        except runner.HostError as error:
            errors[name] = error.message
    row = runner.insert("Order", {
        "number": 1, "total": "12.50", "at": datetime.datetime(2026, 1, 31, 9, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
        "day": datetime.date(2026, 1, 31), "lasts": datetime.timedelta(minutes=2), "data": b"\x00\xff", "more": {"a": [1, None]},
    })
    again = runner.query("Order").where("total", ">=", row["total"]).where("at", "=", row["at"]).where("day", "in", [row["day"]]).first()
    return {"errors": errors, "types": {name: repr(value) for name, value in again.items() if name != "id"}, "row": again}


class Nested:
    def __init__(self, n):
        self.inner = Nested(n + 1)


class Shown:
    def __repr__(self):
        return f"<{self!r}>"


class Found:
    def __getattr__(self, name):
        return getattr(self, name + "x")


def sort(n):
    return sorted([1], key=lambda _: sort(n + 1))


def some(n):
    return any(some(n + 1) for _ in (1,))


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


# Recursions through C, in which each level takes a part of the stack.
RECURSIONS = {
    "init": lambda: Nested(0),
    "repr": lambda: repr(Shown()),
    "getattr": lambda: Found().x,
    "sort": lambda: sort(0),
    "any": lambda: some(0),
    "list": lambda: repr(nested(100_000)),
    "compare": lambda: nested(100_000) == nested(100_000),
    "loads": lambda: __import__("json").loads("[" * 100_000),
    "dumps": lambda: __import__("json").dumps(nested(100_000)),
    "compile": lambda: compile("(" * 5_000 + ")" * 5_000, "x", "eval"),
    "copy": lambda: copy.deepcopy(nested(100_000)),
    "pickle": lambda: __import__("pickle").dumps(nested(100_000)),
    "re": lambda: __import__("re").compile("(" * 3_000 + ")" * 3_000),
}


@handler
def recursions(req: Request):
    try:
        RECURSIONS[req.params["kind"]]()
    except (RecursionError, MemoryError) as error:
        return {"error": type(error).__name__}
    return {"error": ""}
