"""Serves the handlers without the runner: as a WSGI application, and by Python's library alone, in four processes.

The arguments are directories with modules whose KERNELS are served too.
"""

import json
import os
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROCESSES = 4


def hello():
    return {"message": "hello"}


def hundred(body):
    rows = json.loads(body)
    for row in rows:
        row["total"] = row["qty"] * row["price"]
    return rows


kernels = {}


def answer(method, path, body):
    """The body of the answer, or None if the path is unknown."""
    if method == "GET" and path == "/hello":
        value = hello()
    elif method == "POST" and path == "/hundred":
        value = hundred(body)
    elif method == "GET" and path[1:] in kernels:
        value = {"result": kernels[path[1:]]()}
    else:
        return None
    return json.dumps(value).encode()


def application(environ, start_response):
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    text = answer(environ["REQUEST_METHOD"], environ["PATH_INFO"], body)
    status = "404 Not Found" if text is None else "200 OK"
    text = text or b""
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(text)))])
    return [text]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet, if they fit
    disable_nagle_algorithm = True

    def do_GET(self):
        text = answer(self.command, self.path, self.rfile.read(int(self.headers.get("Content-Length", 0))))
        self.send_response(404 if text is None else 200)
        text = text or b""
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET

    def log_message(self, format, *args):
        pass


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # wrk resets its connections at its end
            super().handle_error(request, client_address)


def serve():
    """Serves in four processes that share a socket, each with a thread for each connection."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    server = Server(listener.getsockname(), Handler, bind_and_activate=False)
    server.socket = listener
    print("listening on http://%s:%d" % listener.getsockname(), flush=True)
    for _ in range(PROCESSES - 1):
        if os.fork() == 0:
            break
    server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.path.append(sys.argv[1])
        from kernels import KERNELS

        kernels.update(KERNELS)
    serve()
