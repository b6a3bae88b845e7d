from shop import app

from runner import insert, query, wsgi


@app.post("/orders")
def create():
    return {"id": insert("Order", {"number": 7, "total": "12.50"})["id"]}


@app.get("/orders")
def orders():
    return [{"number": o["number"], "total": str(o["total"] * 2)} for o in query("Order").rows()]


shop = wsgi(app)
warmed = wsgi(app, warm=("/json/3", "/messages"))
