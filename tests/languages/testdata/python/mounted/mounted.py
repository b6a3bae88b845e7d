"""An application below routes with settings, and requests to another service at their limits."""

import asyncio
import hashlib

import requests
from flask import Flask, jsonify, request

from runner import HostError, Request, aio, fetch, handler, wsgi

app = Flask("mounted")


@app.route("/", defaults={"rest": ""}, methods=["GET", "POST"])
@app.route("/<path:rest>", methods=["GET", "POST", "DELETE"])
def show(rest):
    return jsonify(rest=rest, method=request.method)


@app.post("/upload")
def upload():
    files = [[f.filename, f.mimetype, len(data), hashlib.sha256(data).hexdigest()] for f in request.files.getlist("files") if (data := f.read()) is not None]
    return jsonify(title=request.form["title"], files=files)


mounted = wsgi(app)


def code(attempt):
    try:
        return attempt().status
    except HostError as error:
        return error.code


@handler
def limits(req: Request):
    service = req.query["service"]

    def late():
        try:
            requests.get(service + "/slow", timeout=0.1)
        except requests.Timeout as error:
            return type(error).__name__

    return {
        "large": lambda: code(lambda: fetch(service, method="POST", body=b"x" * 1_500_000)),
        "larger": lambda: code(lambda: fetch(service, method="POST", body=b"x" * 1_600_000)),
        "whole": lambda: len(fetch(service + "/whole").body),
        "answer": lambda: code(lambda: fetch(service + "/huge")),
        "late": lambda: code(lambda: fetch(service + "/slow", timeout=0.1)),
        "late requests": late,
        "method": lambda: code(lambda: fetch(service, method="TRACE")),
        "header": lambda: code(lambda: fetch(service, headers={"Host": "elsewhere.example"})),
        "origin": lambda: code(lambda: fetch("https://elsewhere.example/")),
        "manual": lambda: code(lambda: fetch(service + "/moved", redirect="manual")),
        "error": lambda: code(lambda: fetch(service + "/moved", redirect="error")),
    }[req.params["what"]]()


@handler
def count(req: Request):
    return [code(lambda: fetch(req.query["service"])) for _ in range(51)][-2:]


@handler
async def together(req: Request):
    all = await asyncio.gather(*[aio.fetch(req.query["service"]) for _ in range(40)])
    return [answer.status for answer in all].count(200)
