"""Handing in, listing and approving expenses."""

from datetime import date, datetime, timedelta, timezone

from runner import Request, abort, bad_request, created, error, get, handler, insert, no_content, ok, query, update
from runner.schema import Decision, ExpenseQuery, NewExpense


@handler("submit")
def submit(req: Request[NewExpense]):
    expense = req.json()
    spent = date.fromisoformat(expense["spent"])
    if spent > date.today():
        return bad_request("spent is in the future")
    row = insert("Expense", expense)
    return created(row, f"/v1/expenses/{row['id']}")


@handler("listExpenses")
def list_expenses(req: Request[ExpenseQuery]):
    wanted = req.json()
    expenses = query("Expense").order_by("spent", "desc").limit(50).after(wanted.get("cursor"))
    if state := wanted.get("state"):
        expenses = expenses.where("state", "=", state)
    return ok(expenses.as_page())


@handler("decide")
def decide(req: Request[Decision]):
    expense = get("Expense", req.params["id"], "state").row()
    if expense["state"] != "submitted":
        abort(error(409, f"it is {expense['state']} already"))
    state = "approved" if req.json()["approve"] else "rejected"
    rows = update("Expense", {"state": state, "decidedAt": datetime.now(timezone.utc)}).where("id", "=", req.params["id"]).rows()
    return rows[0]


@handler
def expire(req: Request):
    """The job of each night."""
    old = date.today() - timedelta(days=90)
    update("Expense", {"state": "rejected"}).where("state", "=", "submitted").where("spent", "<", old).run()
    return no_content()
