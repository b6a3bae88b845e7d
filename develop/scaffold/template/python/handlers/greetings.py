"""The handlers of the app: one function for each name in the schema."""

import logging

from runner import Request, bad_request, context, created, handler, insert, query
from runner.schema import GreetingInput


@handler
def hello(req: Request):
    name = req.params["name"]
    if name == "nobody":
        return bad_request("there is nobody to greet")
    return {"name": name, "text": f"hello {name}"}


@handler
def list_greetings(req: Request):
    """The newest greetings, of all or of ?name=."""
    greetings = query("Greeting").select("name", "text").order_by("placedAt", "desc").limit(20)
    if name := req.query.get("name"):
        greetings = greetings.where("name", "=", name)
    return greetings.rows()


@handler
def create_greeting(req: Request[GreetingInput]):
    """Keeps a greeting. The body fits GreetingInput: the runner has checked it."""
    greeting = insert("Greeting", req.json())
    logging.info("greeting placed by key %s", context().auth.key_id)
    return created(greeting)
