"""An application in Flask. It runs in the runner and in another Python, which must answer the same."""

from flask import Flask, abort, flash, get_flashed_messages, jsonify, redirect, render_template, request, session, url_for
from werkzeug.security import check_password_hash, generate_password_hash

app = Flask(__name__)
app.secret_key = "a secret of the tests"


@app.get("/")
def index():
    return "hello from flask"


@app.get("/json/<int:n>")
def as_json(n):
    return jsonify(n=n, squares=[i * i for i in range(n)], args=request.args.to_dict(flat=False))


@app.route("/visits")
def visits():
    session["n"] = session.get("n", 0) + 1
    return str(session["n"])


@app.post("/upload")
def upload():
    f = request.files["file"]
    data = f.read()
    flash(f"got {f.filename} with {len(data)} bytes: {data[:8].hex()}")
    return redirect(url_for("messages"))


@app.get("/messages")
def messages():
    return render_template("messages.html", messages=get_flashed_messages(), url=url_for("as_json", n=3), home=url_for("index"))


@app.post("/password")
def password():
    hash = generate_password_hash(request.form["password"])
    return jsonify(
        method=hash.split("$")[0], right=check_password_hash(hash, request.form["password"]), wrong=check_password_hash(hash, "other")
    )


@app.put("/echo/<path:rest>")
def echo(rest):
    return request.get_data(), 201, {"content-type": "application/octet-stream", "x-path": request.path, "x-rest": rest}


seen = []


@app.get("/fail/<kind>")
def fail(kind):
    seen.append(kind)  # which no other request must see
    if len(seen) > 1:
        return "another request has been here"
    if kind == "abort":
        abort(418)
    if kind == "key":
        {}[kind]
    raise ValueError(kind)
