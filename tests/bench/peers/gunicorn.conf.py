# Settings of gunicorn for the bench: it prints its address to the standard output.
bind = "127.0.0.1:0"
loglevel = "warning"
timeout = 0  # a busy machine may import the application for long


def when_ready(server):
    print("listening on http://%s:%d" % server.LISTENERS[0].sock.getsockname(), flush=True)
