"""An application in Flask. It knows nothing of the runner."""

from http.client import HTTPConnection

from flask import Flask, jsonify, render_template

app = Flask(__name__)

ROWS = [{"number": n, "item": f"<lamp {n}>", "total": n * 12.5} for n in range(20)]


@app.get("/hello")
def hello():
    return jsonify(message="hello")


@app.get("/page")
def page():
    return render_template("page.html", rows=ROWS)


@app.get("/wait/<int:port>")
def wait(port):
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/")
    return connection.getresponse().read()
