"""The report of a month as CSV."""

import csv
import io
from collections import defaultdict
from datetime import date
from decimal import Decimal

from runner import Request, bad_request, handler, ok, query


@handler
def report(req: Request):
    try:
        first = date.fromisoformat(req.params["month"] + "-01")
    except ValueError:
        return bad_request("the month must be like 2026-11")
    after = date(first.year + first.month // 12, first.month % 12 + 1, 1)
    approved = query("Expense").where("state", "=", "approved").where("spent", ">=", first).where("spent", "<", after)
    totals: defaultdict[str, Decimal] = defaultdict(Decimal)
    page = approved.limit(1000).page()
    while True:
        for expense in page.rows:
            totals[expense["employee"]] += expense["amount"]
        if page.next_cursor is None:
            break
        page = approved.limit(1000).after(page.next_cursor).page()
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(["employee", "amount"])
    lines.writerows(sorted(totals.items()))
    lines.writerow(["total", sum(totals.values(), Decimal())])
    return ok(text.getvalue().encode()).with_header("content-type", "text/csv; charset=utf-8")
