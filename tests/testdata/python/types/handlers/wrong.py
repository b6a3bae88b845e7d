"""Each line with a mark must be an error of the type checker that has this text, and no other line may be one."""

import datetime
import decimal
from typing import assert_type

from runner import (
    NULL, Request, Response, aggregate, aio, api_keys, context, fetch, field, get, handler, hmac_digest, insert, jobs, ok, query, redirect,
    remove, secret, sessions, update, var, webhooks,
)
from runner.schema import Bill, NewTicket, Nothing, Ticket, TicketInsert, TicketQuery, TicketUpdate  #! "Nothing" is unknown import symbol


def names() -> None:
    query("Tickets")  #! "Literal['Tickets']"
    get("Tikcet", "1")  #! "Literal['Tikcet']"
    insert("Notes", {"ticket": "1", "text": "a"})  #! "Literal['Notes']"
    update("Tickets", {"title": "a"})  #! "Literal['Tickets']"
    remove("Tickets")  #! "Literal['Tickets']"
    aggregate("Tickets")  #! "Literal['Tickets']"
    secret("HOK")  #! "Literal['HOK']"
    hmac_digest("HOK", b"")  #! "Literal['HOK']"
    webhooks.verify("stripe", "HOK")  #! "Literal['HOK']"
    webhooks.verify("paypal", "HOOK")  #! "Literal['paypal']"
    var("LIMITS")  #! "Literal['LIMITS']"
    api_keys.create("desks")  #! "Literal['desks']"
    sessions.create("u1", roles=["agents"])  #! "Literal['agents']"
    jobs.enqueue("remnd", {"ticket": "1"})  #! "Literal['remnd']"
    if context().auth.kind == "apikey":  #! no overlap
        pass
    fetch("https://api.example.com", redirect="never")  #! "Literal['never']"
    redirect("/", 200)  #! "Literal[200]"


def fields() -> None:
    tickets = query("Ticket")
    tickets.select("id", "titel")  #! "Literal['titel']"
    tickets.where("titel", "=", "a")  #! "Literal['titel']"
    tickets.order_by("titel")  #! "Literal['titel']"
    tickets.order_by("title", "down")  #! "Literal['down']"
    tickets.order_by("meta")  #! "Literal['meta']"
    tickets.match(field("titel", "=", "a"))  #! "Literal['titel']"
    tickets.match(field("text", "=", "a"))  #! "Literal['text']" is not a subtype of "TicketField"
    other = field("email", "=", "a")
    tickets.match(other)  #! "Literal['email']" is not a subtype of "TicketField"
    tickets.include("title")  #! "Literal['title']"
    tickets.include("author", "title")  #! "Literal['title']"
    get("Ticket", "1", "titel")  #! "Literal['titel']"
    aggregate("Ticket").sum("title")  #! "Literal['title']"
    aggregate("Ticket").group_by_time("title", "day")  #! "Literal['title']"
    tickets.first()["title"]  #! "None" is not subscriptable
    aggregate("Ticket").group_by("stages")  #! "Literal['stages']"
    tickets.first_or_fail()["titel"]  #! "titel" is not a defined key
    remove("Note").where("title", "=", "a").run()  #! "Literal['title']"
    tickets.include("author").first_or_fail()["author"]["email"]  #! not subscriptable
    tickets.first_or_fail()["author"]["email"]  #! "Literal['email']"


def operands() -> None:
    tickets = query("Ticket")
    tickets.where("title", "=", 1)  #! "Literal[1]"
    tickets.where("title", "==", "a")  #! "Literal['==']"
    tickets.where("title", "=", None)  #! "None"
    tickets.where("agent", "=", None)  #! "None"
    tickets.where("author", "=", NULL)  #! "Null"
    tickets.where("id", "=", query("User").first_or_fail().get("hash"))  #! "str | None"
    tickets.where("price", "=", b"1")  #! "Literal[b"1"]"
    tickets.where("price", "startsWith", "1")  #! "Literal['startsWith']"
    tickets.where("stage", "=", "opne")  #! "Literal['opne']"
    tickets.where("stage", "in", ["opne"])  #! "list[str]"
    tickets.where("stage", "<", "open")  #! "Literal['<']"
    tickets.where("title", "in", "abc")  #! "Literal['abc']"
    tickets.where("tags", "=", "blue")  #! "Literal['=']"
    tickets.where("meta", "=", "a")  #! "Literal['a']"
    tickets.where("openedAt", "<", 5)  #! "Literal[5]"
    tickets.where("spent", "<", decimal.Decimal(1))  #! "Decimal"
    tickets.where("votes", "=", 1, ignore_case=True)  #! "Literal['votes']"
    tickets.match(field("votes", "=", "many"))  #! "Literal['many']"
    tickets.limit("5")  #! "Literal['5']"
    update("Ticket", {"title": "a"}).where("votes", "=", "a").run()  #! "Literal['a']"


def values() -> None:
    insert("Note", {"ticket": "1"})  #! "text" is required
    insert("Note", {"ticket": "1", "text": 1})  #! "Literal[1]"
    insert("Note", {"ticket": "1", "text": "a", "by": "b"})  #! "by" is an undefined item
    insert("Note", [{"ticket": "1"}])  #! "list[dict[str, str]]"
    insert("Ticket", {"title": "a"})  #! is required
    new: TicketInsert = {"author": "u", "number": "1", "title": "t", "token": "x", "tags": "ab", "price": 1}  #! "Literal['ab']"
    changed: TicketUpdate = {"openedAt": datetime.datetime.now()}  #! "openedAt" is an undefined item
    update("Ticket", {"id": "1"})  #! "id" is an undefined item
    update("Ticket", {"stage": "gone"})  #! "Literal['gone']"
    ok([new, changed])


def jobs_and_bodies(req: Request[NewTicket]) -> None:
    jobs.enqueue("remind")  #! "Literal['remind']"
    jobs.enqueue("remind", {})  #! "ticket" is required
    jobs.enqueue("remind", {"ticket": 1})  #! "Literal[1]"
    jobs.enqueue("remind", {"ticket": "1", "stages": "open"})  #! "stages" is an undefined item
    jobs.enqueue("remind", {"ticket": "1"}, delay="1h")  #! "Literal['1h']"
    jobs.enqueue("clean", {"a": 1})  #! "CleanArgs | None"
    req.json()["titel"]  #! "titel" is not a defined key
    req.json()["due"]  #! "due" is not a required key
    assert_type(req.json()["number"], int)  #! expected "int" but received "str"
    assert_type(var("LIMIT"), str)  #! expected "str" but received "int"
    insert("Note", req.json())  #! "ticket" is missing from "NewTicket"


async def missing_await() -> None:
    aio.fetch("https://api.example.com")  #! Result of async function call is not used
    aio.hash_password("x")  #! Result of async function call is not used


@handler("listTicket")  #! "Literal['listTicket']"
def unknown(req: Request):
    return ok()


@handler("createTicket")  #! "(req: Request[TicketQuery])
def other_input(req: Request[TicketQuery]):
    return ok(query("Ticket").first_or_fail())


@handler("countTickets")  #! "Response[str]"
def other_result(req: Request):
    return ok("many")


@handler
def other_row(req: Request) -> Response[Ticket]:
    return ok(query("Ticket"))  #! "list[Ticket]" is not assignable to "Ticket"


@handler
def bill_without_total(req: Request) -> Response[Bill]:
    return ok({"number": "1", "lines": [], "at": datetime.datetime.now()})  #! "dict[str, 


def never(nothing: Nothing) -> None:  #! "nothing" is unknown
    pass
