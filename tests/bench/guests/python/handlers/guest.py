from runner import Request, created, handler, insert, ok


@handler
def hello(req: Request):
    return ok({"message": "hello"})


@handler
def order(req: Request):
    order = req.json()
    return created(insert("Order", {"item": order["item"], "qty": order["qty"]}))


@handler
def hundred(req: Request):
    rows = req.json()
    for row in rows:
        row["total"] = row["qty"] * row["price"]
    return ok(rows)
