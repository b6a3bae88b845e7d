"""Answers that are refused, and those of operations that fail."""

from runner import Request, get, handler, ok, query


@handler
def headers(req: Request):
    """Each answer has a header that must not be on the answer of an error."""
    shared = {
        "refused": ok(1),
        "body": ok({1}),
        "denied": ok(query("Secret")),
        "absent": ok(get("Order", "01jd8e2g7cq1qjz1h6y2x3v4w5")),
        "first": ok(query("Order").as_first()),
        "rows": ok(query("Order")),
    }[req.params["what"]].with_header("cache-control", "public, max-age=3600")
    return shared.with_header("date", "x") if req.params["what"] == "refused" else shared
