"""The Python SDK's guest of the conformance suite. tests/conformance/README.md describes its handlers."""

import asyncio
import datetime
import hashlib
import hmac as hmacs
import logging
import math
import time

import runner
from runner import (
    NULL, HostError, Request, aggregate, aio, and_, api_keys, bad_request, created, error, events, fetch, field, forbidden, get, handler,
    hmac_digest, insert, jobs, keep_writes, no_content, not_, not_found, ok, or_, password, query, redirect, remove, send_file,
    sessions, sign_file, stream, unauthorized, update, var, webhooks,
)
from runner.schema import OrderInsert

logging.getLogger().setLevel(logging.DEBUG)


@handler
def echo(req: Request):
    return ok({
        "method": req.method, "path": req.path, "raw": req.raw_query, "name": req.params["name"], "q": req.query.get("q"), "all": req.query_all.get("q", []),
        "one": req.headers.get("x-one"), "missing": req.headers.get("x-missing"), "bytes": len(req.body),
    })


@handler
def body(req: Request):
    thing = req.json()
    if not thing.get("item"):
        return bad_request("missing field: item")
    return created({"item": thing["item"], "qty": thing.get("qty", 1), "ratio": thing.get("ratio")}, "/things/1")


@handler
def raw(req: Request):
    return ok(req.body).with_header("content-type", "application/octet-stream")


@handler
def answers(req: Request):
    what = req.params["what"]
    no, small = f"no: {what}", {"a": 1}
    match what:
        case "ok":
            return ok(small)
        case "null":
            return ok()
        case "text":
            return ok('é\n"<')
        case "created":
            return created(small)
        case "nowhere":
            return created(small, "")
        case "location":
            return created(small, "/a/1")
        case "noContent":
            return no_content()
        case "redirect":
            return redirect("/elsewhere")
        case "moved":
            return redirect("https://example.com/x", 308)
        case "badRequest":
            return bad_request(no)
        case "unauthorized":
            return unauthorized(no)
        case "problem":
            return error(402, no, code="no_credit", balance=3)
        case "reserved":
            return error(402, no, code="no_credit", title="x")
        case "forbidden":
            return forbidden(no)
        case "notFound":
            return not_found(no)
        case "error":
            return error(422, no)
        case "empty":
            return not_found("")
        case "headers":
            return ok(1).with_header("x-a", "1").with_header("x-a", "2")
        case "denied":
            return ok(1).with_header("date", "x")
    return not_found("unknown")


@handler
def context(req: Request):
    c = runner.context()
    a = c.auth
    return {
        "requestId": c.request_id, "route": c.route, "kind": a.kind, "userId": a.user_id, "tenant": a.tenant, "roles": a.roles,
        "keyId": a.key_id, "scope": a.scope, "capability": a.capability, "metadata": a.metadata, "claims": a.claims,
        "deadline": c.deadline.year > 2020,
    }


@handler
def logs(req: Request):
    logging.debug("one")
    logging.info("two ü")
    logging.warning("three")
    logging.error("four")
    return no_content()


count = 0


@handler
def counter(req: Request):
    global count
    count += 1
    return {"n": count}


@handler
def fail(req: Request):
    raise ValueError("boom")


@handler
def panic(req: Request):
    assert False, "boom"


@handler
def silent(req: Request):
    pass


@handler
def seed(req: Request):
    rows = insert("Order", [
        OrderInsert(item="a", qty=1, code="first"), {"item": "b", "qty": 2}, {"item": "c", "qty": 3}, {"item": "d", "qty": 4},
    ])
    return items(rows)


def items(rows):
    return [row["item"] for row in rows]


@handler
def create_order(req: Request[OrderInsert]):
    order = req.json()
    row = insert("Order", {name: order[name] for name in ("item", "qty") if name in order})
    return created(row, f"/orders/{row['id']}")


@handler
def list_orders(req: Request):
    orders = query("Order").select("id", "item", "qty").where("status", "=", "open").order_by("qty", "desc").limit(2)
    if "over" in req.query:
        orders = orders.where("qty", ">", int(req.query["over"]))
    return ok(orders)


@handler
def get_order(req: Request):
    return ok(get("Order", req.params["id"], "id", "item"))


@handler
def name_order(req: Request):
    return {"item": get("Order", req.params["id"]).row()["item"]}


@handler
def update_order(req: Request):
    rows = update("Order", {"status": "paid"}).where("id", "=", req.params["id"]).rows()
    return {"count": len(rows), "items": items(rows)}


@handler
def delete_order(req: Request):
    if remove("Order").where("id", "=", req.params["id"]).run() == 0:
        return not_found("no such order")
    return no_content()


@handler
def first_order(req: Request):
    return query("Order").where("item", "=", req.params["item"]).first_or_fail()


@handler
def pages(req: Request):
    all, cursor = [], None
    while True:
        page = query("Order").select("item").order_by("item").limit(3).after(cursor).page()
        all.append(items(page.rows))
        cursor = page.next_cursor
        if cursor is None:
            return all


@handler
def conditions(req: Request):
    either = or_(field("item", "=", "a"), and_(field("qty", ">=", 2), not_(field("qty", "=", 3))))
    return items(query("Order").select("item").where("item", "in", ["a", "b", "c"]).match(either).rows())


@handler
def missing(req: Request):
    token = req.query.get("token")
    nine = update("Order", {"qty": 9})
    match req.params["what"]:
        case "where":
            nine.where("code", "=", token).run()
        case "or":
            remove("Order").match(or_(field("item", "=", "a"), not_(field("code", "!=", token)))).run()
        case "nan":
            query("Order").where("qty", ">=", math.nan).count()
        case "insert":
            insert("Order", {"item": "x", "qty": math.nan})
        case "enqueue":
            jobs.enqueue("mail", {"to": [1, math.nan]})
        case "limit":
            query("Order").limit(0).rows()
    return {"count": nine.where("code", "=", NULL).run()}


@handler
def count_orders(req: Request):
    orders = query("Order")
    if "q" in req.query:
        orders = orders.where("item", "startsWith", req.query["q"])
    return {"count": orders.count()}


@handler
def related(req: Request):
    order = insert("Order", {"item": "r", "qty": 5})
    insert("Line", [{"order": order["id"], "text": "x"}, {"order": order["id"], "text": "Y"}])
    lines = query("Line").select("text").order_by("text").include("order", "item").rows()
    found = get("Order", order["id"], "item").include(
        "lines", "text",
        query=lambda q: q.where("text", "contains", "y", ignore_case=True).order_by("text", "desc").limit(1).include("order", "qty"),
    ).row()
    return {"lines": lines, "order": found}


@handler
def totals(req: Request):
    groups = aggregate("Order").where("qty", ">=", 1).group_by("status").sum("qty").avg("qty").min("item").max("item", "qty").count()
    return {"groups": groups.groups()}


@handler
def limited(req: Request):
    changed = update("Order", {"qty": 9}).where("qty", ">=", 1).limit(2).run()
    removed = remove("Order").where("qty", "=", 9).limit(5).run()
    counted = query("Order").count(at_most=1)
    first = query("Order").where("item", "=", "none").first()
    insert("Visit", [{"at": at} for at in ("2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z")])
    days = aggregate("Visit").group_by_time("at", "day", "Europe/Berlin").count().groups()
    months = aggregate("Visit").group_by_time("at", "month").count().groups()
    return {"changed": changed, "removed": removed, "counted": counted, "first": first, "days": days, "months": months}


def code_of(function):
    """The code of the error of a function; None without one."""
    try:
        function()
    except HostError as failed:
        return failed.code
    return None


@handler
def everything(req: Request):
    codes = [code_of(update("Order", {"qty": 9}).run), code_of(remove("Order").run)]
    updated = update("Order", {"qty": 9}).every().run()
    return {"codes": codes, "updated": updated, "removed": remove("Order").every().run()}


@handler
def uncaught(req: Request):
    match req.params["what"]:
        case "not_found":
            get("Order", "none").row()
        case "denied":
            insert("Order", {"item": "x"})
        case "conflict":
            insert("Order", {"item": "x", "code": "first"})
        case "invalid":
            query("Nothing").rows()
        case "secret":
            runner.secret("NOPE")
        case "fetch":
            fetch("https://elsewhere.example/")
    return no_content()


@handler
def caught(req: Request):
    return [
        code_of(get("Order", "none").row),
        code_of(lambda: insert("Order", {"item": "x", "code": "first"})),
        code_of(lambda: runner.secret("NOPE")),
        code_of(lambda: webhooks.verify("github", "HOOK")),
        about(lambda: insert("Order", {"item": "x", "code": "first"})),
    ]


def about(attempt):
    try:
        attempt()
    except HostError as error:
        return f"{error.op} {error.entity} {error.field}"


@handler
def kept(req: Request):
    keep_writes()
    insert("Order", {"item": "kept"})
    return error(422, "changed my mind")


@handler
def keys(req: Request):
    key = api_keys.create("readers", name="k", expires_in=datetime.timedelta(hours=1), metadata={"a": 1})
    got = api_keys.get(key.id)
    listed = api_keys.page("readers", limit=10)
    rotated = api_keys.rotate(key.id, grace_period=60)
    revoked = api_keys.revoke(key.id)
    return {
        "name": got.name, "token": (key.token or "").startswith("cnf_"), "metadata": got.metadata, "listed": len(listed.keys),
        "rotating": rotated.status, "revoked": revoked.status,
    }


@handler
def all_keys(req: Request):
    api_keys.create("readers", name="newest")
    all = api_keys.list()
    last = all[-1]
    return {"keys": len(all), "owner": last.owner, "kind": last.owner_kind, "name": last.name, "end": True}


@handler
def variables(req: Request):
    other = code_of(lambda: var("NOPE"))
    origin, note, count, price, on, idle, burst = map(var, ("ORIGIN", "NOTE", "COUNT", "PRICE", "ON", "IDLE", "BURST"))
    return {
        "origin": origin, "note": note, "count": count + 1, "price": price, "on": not on, "idle": int(idle.total_seconds()),
        "burst": burst, "again": note, "other": other,
    }


@handler
def secret(req: Request):
    return {"value": runner.secret("HOOK")}


@handler
def sums(req: Request):
    key = runner.secret("HOOK")
    digest, signed = hashlib.sha256(req.body), hmac_digest("HOOK", req.body)
    return {
        "digest": digest.hexdigest(), "hmac": signed.hex(), "equal": hmacs.compare_digest(signed, signed),
        "other": hmacs.compare_digest(signed, digest.digest()), "length": len(key),
    }


@handler
def passwords(req: Request):
    body = req.text()
    hash = password.hash(body)
    old = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"
    checks = [password.verify(body, hash), password.verify("other", hash), password.verify(body, None), password.verify("secret", old)]
    right, wrong, unknown, old = [{"valid": check.valid, "rehash": check.rehash} for check in checks]
    return {
        "hash": hash.startswith("$argon2id$"), "right": right, "wrong": wrong, "unknown": unknown, "old": old,
        "malformed": code_of(lambda: password.verify(body, "plain")),
    }


@handler
async def calls(req: Request):
    service = req.headers["x-service"]
    one, two = await asyncio.gather(
        aio.fetch(f"{service}/one", method="POST", body=req.body, headers={"content-type": "application/octet-stream", "x-a": "1"}),
        aio.fetch(f"{service}/two"),
    )
    elsewhere = ""
    try:
        await aio.fetch("https://elsewhere.example/")
    except HostError as failed:
        elsewhere = failed.code
    told = lambda r: {"status": r.status, "bytes": len(r.body), "told": r.headers.get("x-told")}
    return {"one": told(one), "two": told(two), "elsewhere": elsewhere}


@handler
def redirects(req: Request):
    url = req.headers["x-service"] + "/moved"
    manual, follow = fetch(url, redirect="manual"), fetch(url, redirect="follow")
    return {"manual": manual.status, "follow": follow.status, "error": code_of(lambda: fetch(url, redirect="error"))}


@handler
def sign_in(req: Request):
    if req.params["what"] == "full":
        opened = sessions.create("ada", tenant="acme", roles=["admin"], ttl=600)
    else:
        opened = sessions.create("bob")
    return {"id": opened.id, "expiresAt": opened.expires_at}


@handler
def sign_out(req: Request):
    if "id" in req.query:
        sessions.revoke(req.query["id"])
    else:
        sessions.revoke_current()
    return no_content()


def chosen(req: Request):
    return sessions.of(req.query["user"]) if "user" in req.query else sessions


@handler
def list_sessions(req: Request):
    tenant, every, cursor = req.query.get("tenant"), bool(req.query.get("all")), req.query.get("cursor")
    whose = chosen(req)
    if "limit" in req.query:
        page = whose.page(tenant=tenant, all_tenants=every, limit=int(req.query["limit"]), cursor=cursor)
    elif cursor is not None:
        page = whose.page(tenant=tenant, all_tenants=every, limit=1000, cursor=cursor)
    else:
        page = runner.SessionPage(whose.list(tenant=tenant, all_tenants=every), None)
    first = None
    if page.sessions:
        s = page.sessions[0]
        first = {
            "userId": s.user_id, "tenant": s.tenant, "roles": s.roles, "current": s.current,
            "timed": s.expires_at > s.created_at and s.last_seen_at >= s.created_at,
        }
    return {"count": len(page.sessions), "first": first, "more": page.next_cursor is not None}


@handler
def end_sessions(req: Request):
    n = chosen(req).revoke_all(
        tenant=req.query.get("tenant"), all_tenants=bool(req.query.get("all")), keep=req.query.get("except")
    )
    return {"count": n}


@handler
def verify(req: Request):
    delivery = webhooks.verify(req.params["scheme"], req.query["secret"])
    return {"id": delivery.id, "timed": (delivery.timestamp or 0) > 1_577_836_800}


@handler
def enqueue(req: Request):
    match req.params["what"]:
        case "unknown":
            jobs.enqueue("mial", {})
            return no_content()
        case "missing":
            jobs.cancel("job_0")
            return no_content()
    ada = {"to": "ada"}
    first = jobs.enqueue("mail", ada)
    later = jobs.enqueue("mail", ada, delay=datetime.timedelta(minutes=1), key="k")
    jobs.enqueue("mail", ada, at=datetime.datetime(2026, 1, 31, 9, 30, tzinfo=datetime.timezone.utc))
    again = jobs.enqueue("mail", ada, key="k")
    cancelled = jobs.cancel(later.id)
    return {
        "created": first.created, "again": again.created, "same": again.id == later.id, "cancelled": cancelled,
        "twice": jobs.cancel(later.id),
    }


@handler
def job(req: Request):
    job = runner.context().job
    return ok({"attempt": job.attempt, "scheduledFor": job.scheduled_for}) if job else not_found("no job")


@handler
def mail(req: Request):
    return no_content()


@handler
def bodies(req: Request):
    match req.params["what"]:
        case "echo":
            return stream(iter(lambda: req.stream.read1(), b""))
        case "whole":
            return {"bytes": len(req.body)}
    insert("Order", {"item": "body"})
    length = total = 0
    while part := req.stream.read(10_000):
        length += len(part)
        total += sum(part)
    return {"bytes": length, "sum": total}


@handler
def streams(req: Request):
    what = req.params["what"]
    match what:
        case "events":
            return events([
                {"event": "tick", "id": 1, "data": f"last {req.headers.get('last-event-id', 'none')}"}, "a\r\nb\rc\n\nd",
                {"id": "2", "retry": 1500}, {"event": "bye", "data": ""},
            ])
        case "refused":
            return events([{"event": "a\nb", "data": "x"}])
        case "forever":
            return stream(bytes(64 << 10) for _ in iter(int, 1))
        case "parts" | "fails":
            insert("Order", {"item": "before"})
    return stream(parts(what), type="text/plain")


def parts(what: str):
    yield "one\n"
    if what == "fails":
        raise ValueError("boom")
    if what == "uncaught":
        get("Order", "none").row()
    while not query("Order").where("item", "=", "go").count():
        time.sleep(0.01)
    insert("Order", {"item": "after"})
    yield "two\n"
    yield "three\n"


@handler
def files(req: Request):
    form = req.upload
    first = insert("Document", {"title": form.get("title"), "scan": form.file("scan")})
    made = runner.file("a note ü", name="note.md", type="text/markdown")
    second = insert("Document", {"title": "note", "scan": made})
    scan = first["scan"]
    return ok({
        "text": scan.text(), "name": scan.name, "type": scan.type, "size": scan.size, "note": second["scan"].size, "other": form.file("other") is not None,
    })


@handler
def sent(req: Request):
    scan = req.upload.file()
    assert scan
    return send_file(scan, status=201, disposition="attachment", name="copy.txt", cache="private").with_header("x-sent", "yes")


@handler
def linked(req: Request):
    row = insert("Document", {"title": "linked", "scan": req.upload.file()})
    link = sign_file(row["scan"], expires=datetime.timedelta(minutes=10), disposition="attachment", name="copy.txt")
    return ok({"link": link.startswith("/_files/")})
