"""Serves the application of shop.py in this Python, below a prefix, and prints its port."""

import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server

from shop import app, seen
from werkzeug.middleware.dispatcher import DispatcherMiddleware


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass


def fresh(environ, start_response):
    seen.clear()  # as a process of its own has it
    return app(environ, start_response)


server = make_server("127.0.0.1", 0, DispatcherMiddleware(lambda *args: [], {"/shop": fresh}), handler_class=Quiet)
print(server.server_port, flush=True)
server.serve_forever()
