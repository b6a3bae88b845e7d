"""Handlers that must pass the type checker. assert_type states the exact type of a value."""

import asyncio
import datetime
import decimal
import logging
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Literal, assert_type

from runner import (
    NULL, ApiKey, Condition, Counts, FetchResponse, HostError, Operation, Page, Request, Response, Selection, abort, aggregate, aio, and_, api_keys,
    bad_request, context, created, error, events, fetch, field, forbidden, get, handler, hmac_digest, html, insert, jobs, keep_writes,
    no_content, not_, not_found, ok, or_, password, query, redirect, remove, secret, sessions, stream, text, unauthorized, update, var,
    warm, webhooks, wsgi,
)
from runner.schema import (
    Bill, EntityName, JobName, Link, MergeParams, NewTicket, Note, RemindArgs, RemindParams, RoleName, ScopeName, SecretName, Stage,
    Ticket, TicketField, TicketInsert, TicketQuery, TicketUpdate, TicketWith, User,
)

log = logging.getLogger("desk")
prices: dict[str, decimal.Decimal] = {}


@warm
def load() -> None:
    prices["basic"] = decimal.Decimal("9.50")


@handler("listTickets")
def list_tickets(req: Request[TicketQuery]):
    wanted = req.json()
    assert_type(wanted["limit"], int)
    rows = query("Ticket").limit(wanted["limit"])
    stage = wanted.get("stage")
    if stage is not None:
        assert_type(stage, Stage)
        rows = rows.where("stage", "=", stage)
    return ok(rows)


@handler("getTicket")
def get_ticket(req: Request) -> Response[Ticket | None]:
    ticket = get("Ticket", req.params["id"])
    assert_type(ticket.row(), Ticket)
    assert_type(ticket.row_or_none(), Ticket | None)
    if req.query.get("strict") == "1":
        return not_found("no such ticket")
    return ok(get("Ticket", req.params["id"]))


@handler("createTicket")
def create_ticket(req: Request[NewTicket]):
    new = req.json()
    assert_type(new["price"], str | int | float)
    if not new["title"].strip():
        return bad_request("missing: title")
    ticket = insert("Ticket", new)
    assert_type(ticket, Ticket)
    jobs.enqueue("remind", {"ticket": ticket["id"]}, delay=datetime.timedelta(hours=1), key=ticket["id"])
    jobs.enqueue("clean")
    return created(ticket, location=f"/v1/tickets/{ticket['id']}")


@handler
def change_ticket(req: Request):
    body = req.json()
    change: TicketUpdate = {"title": str(body["title"]), "closedAt": datetime.datetime.now(datetime.timezone.utc), "due": None}
    tickets = update("Ticket", change).where("id", "=", req.params["id"]).rows()
    assert_type(tickets, list[Ticket])
    assert_type(update("Ticket", {"votes": 1, "tags": ("a", "b")}).every().run(), int)
    assert_type(remove("Note").match(field("ticket", "=", req.params["id"])).run(), int)
    done = remove("Note").match(field("ticket", "=", req.params["id"])).limit(500).run()
    assert_type(done, Counts)
    assert_type(done.more, bool)
    assert_type(update("Ticket", change).every().limit(10).rows(), list[Ticket])
    assert_type(query("Ticket").count(at_most=10_000), Counts)
    days = aggregate("Ticket").group_by_time("openedAt", "day", "Europe/Berlin").count().groups()
    assert_type(days[0]["group"]["openedAt"], datetime.date)
    assert_type(query("Ticket").first(), Ticket | None)
    return ok(tickets[0])


@handler("bill")
def bill(req: Request) -> Response[Bill]:
    ticket = query("Ticket").first_or_fail()
    total = ticket["price"] * 2
    assert_type(total, decimal.Decimal)
    return ok({
        "number": ticket["number"], "lines": [{"text": "work", "price": total}], "total": total, "at": ticket["openedAt"],
    })


@handler("countTickets")
def count(req: Request):
    return query("Ticket").where("stage", "!=", "closed").count()


@handler("merge")
async def merge(req: Request[MergeParams]):
    given = req.json()
    assert_type(given["dry"], bool)
    return ok(len(given["others"]))


@handler
def remind(req: Request[RemindParams]):
    given = req.json()
    assert_type(given["stage"], Stage)
    assert_type(given.get("at"), str | None)
    job = context().job
    if job is not None:
        log.info("attempt %d of %s", job.attempt, job.id)
    return no_content()


@handler
def hook(req: Request):
    delivery = webhooks.verify("stripe", "HOOK")
    log.info("%s at %s", delivery.id, delivery.timestamp)
    form = req.form()
    file = form.file("scan")
    if file is not None:
        insert("Ticket", {
            "author": "u1", "number": "A-1", "title": "a", "token": uuid.uuid4(), "tags": [], "price": 5, "scan": file.data,
            "spent": datetime.timedelta(hours=1), "meta": {"a": [1]}, "closedAt": req.text(), "stage": "open",
        })
    return html("<p>done</p>")


@handler
async def services(req: Request) -> Response[dict[str, Any]]:
    first, second = await asyncio.gather(aio.fetch("https://api.example.com/a"), aio.fetch("https://api.example.com/b", json={"a": 1}))
    assert_type(first, FetchResponse)
    assert_type(second.status, int)
    assert_type(fetch("https://api.example.com/c", redirect="error").ok, bool)
    assert_type(await aio.hash_password("x"), str)
    user = query("User").where("email", "=", "a@example.com", ignore_case=True).first()
    if not password.verify("x", user.get("hash") if user else None):
        return unauthorized("wrong password")
    if user is None:
        return forbidden()
    sessions.create(user["id"], roles=["agent"], ttl=3600)
    key = api_keys.create("desk", name="robot", expires_in=datetime.timedelta(days=30))
    assert_type(key, ApiKey)
    assert_type(api_keys.list("desk"), list[ApiKey])
    assert_type(secret("HOOK"), str)
    assert_type(hmac_digest("HOOK", b"x"), bytes)
    assert_type(context().auth.roles, list[RoleName])
    if "admin" not in context().auth.roles:
        abort(forbidden("only admins"))
    keep_writes()
    try:
        get("Ticket", "x").row()
    except HostError as failed:
        if failed.code == "not_found":
            return error(404, "no ticket")
    if req.query_all:
        return redirect("/x", 303)
    return ok({"token": key.token, "at": key.created_at})


@handler
def variables(req: Request):
    assert_type(var("ORIGIN"), str)
    assert_type(var("LIMIT"), int)
    assert_type(var("PRICE"), decimal.Decimal)
    assert_type(var("OPEN"), bool)
    assert_type(var("IDLE"), datetime.timedelta)
    return text("ok")


def rows() -> None:
    tickets: list[Ticket] = (
        query("Ticket")
        .where("price", ">", decimal.Decimal("1.50")).where("price", "in", [1, "2.50"])
        .where("openedAt", "<=", datetime.datetime.now(datetime.timezone.utc)).where("due", "=", datetime.date(2026, 1, 31))
        .where("stage", "in", ["open", "waiting"]).where("agent", "=", NULL).where("tags", "contains", "blue")
        .where("number", "startsWith", "A-", ignore_case=True).where("urgent", "=", True).where("spent", "<", datetime.timedelta(hours=1))
        .where("token", "=", uuid.UUID(int=0)).where("score", ">", 1).where("meta", "!=", NULL)
        .match(field("votes", ">", 1), or_(field("title", "contains", "x"), not_(field("stage", "=", "closed"))))
        .order_by("openedAt", "desc").after(None).limit(5).rows()
    )
    ticket = tickets[0]
    assert_type(ticket["due"], datetime.date | None)
    assert_type(ticket["spent"], datetime.timedelta | None)
    assert_type(ticket["scan"], bytes | None)
    assert_type(ticket["stage"], Literal["open", "waiting", "closed"])
    assert_type(ticket["tags"], list[str])
    assert_type(ticket["author"], str)
    many = query("Ticket").where("tags", "contains", "x")
    condition = field("title", "=", "x")
    assert_type(many.match(condition, and_(condition, field("price", ">", 1))).page(), Page[Ticket])
    assert_type(insert("Note", [{"ticket": ticket["id"], "text": "a"}]), list[Note])
    assert_type(get("Link", "l1").row()["from"], str)
    insert("Link", {"from": ticket["id"], "class": "blocks"})
    assert_type(query("Link").where("class", "=", "blocks").first_or_fail(), Link)
    new: TicketInsert = {"author": "u", "number": "1", "title": "t", "token": "x", "tags": [], "price": 1.5}
    for row in insert("Ticket", (new, {**new, "number": "2"})):
        assert_type(row, Ticket)


def included() -> None:
    row = query("Ticket").include("author", "email").include("notes", query=lambda q: q.order_by("text").limit(2)).first_or_fail()
    assert_type(row["author"], User | None)
    assert_type(row["agent"], str | None)
    assert_type(row.get("notes"), list[Note] | None)
    nested = get("Note", "n1").include("ticket", query=lambda q: q.include("author")).row()
    if nested["ticket"] is not None and nested["ticket"]["author"] is not None:
        assert_type(nested["ticket"]["author"]["email"], str)
    show(row)


def show(row: TicketWith[Any, Any, Any, Any]) -> str:
    return row["title"]


def groups() -> None:
    by_stage = aggregate("Ticket").where("urgent", "=", True).group_by("stage").sum("price", "spent").avg("votes").max("openedAt").count()
    for group in by_stage.groups():
        assert_type(group["group"]["stage"], Stage)
        assert_type(group["count"], int)
        assert_type(group["sum"]["price"], decimal.Decimal | None)
        assert_type(group["sum"]["spent"], datetime.timedelta | None)
        assert_type(group["avg"]["votes"], float | None)
        assert_type(group["max"]["openedAt"], datetime.datetime | None)


def only_open(tickets: Selection[Ticket], names: Sequence[TicketField]) -> Operation[list[Ticket]]:
    return tickets.select(*names).where("stage", "=", "open")


def of_title(title: str) -> Condition[Literal["title"]]:
    return field("title", "=", title)


entity: EntityName = "Ticket"
job: JobName = "remind"
scope: ScopeName = "desk"
hook_secret: SecretName = "HOOK"
arguments: RemindArgs = {"ticket": "t1", "at": datetime.datetime.now(datetime.timezone.utc), "line": {"text": "x", "price": decimal.Decimal(1)}}


@handler
def parts(req: Request) -> Iterator[str]:
    yield "a"


@handler
async def async_parts(req: Request) -> AsyncIterator[bytes]:
    yield b"a"


@handler
def stream_of_parts(req: Request):
    return stream(parts(req), type="text/csv", status=201, headers={"x-a": "b"})


@handler
async def stream_of_events(req: Request):
    return events([{"event": "a", "data": 1}, "x"]) if req.query else events(async_parts(req))


def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response("200 OK", [])
    return [b"ok"]


shop = wsgi(application, warm="/")
