/* Operations. */
#include "guest.h"

runner_json *items(const runner_json *rows) {
  runner_json *all = runner_array();
  RUNNER_EACH(row, rows) runner_push(all, runner_string(runner_as_text(runner_member(row, "item"))));
  return all;
}

static runner_json *order(const char *item, int qty) {
  return runner_object("item", runner_str(item), "qty", runner_int(qty), NULL);
}

RUNNER_HANDLER(seed) {
  runner_json *four = runner_push(runner_array(), runner_put(order("a", 1), "code", runner_str("first")));
  runner_push(runner_push(runner_push(four, order("b", 2)), order("c", 3)), order("d", 4));
  return runner_ok(items(runner_rows(runner_insert("Order", four))));
}

RUNNER_HANDLER(createOrder) {
  runner_json *in = runner_body();
  runner_json *values = runner_object("item", runner_string(runner_as_text(runner_member(in, "item"))), NULL);
  runner_put(values, "qty", runner_member(in, "qty"));
  runner_json *row = runner_row(runner_insert("Order", values));
  return runner_created(row, runner_format("/orders/%s", runner_failed() ? "" : runner_as_text(runner_member(row, "id")).data));
}

RUNNER_HANDLER(listOrders) {
  runner_op *q = runner_select(runner_query("Order"), "id", "item", "qty");
  runner_where(q, "status", "=", runner_str("open"));
  runner_text over = runner_query_value("over");
  if (runner_given(over)) runner_where(q, "qty", ">", runner_int(strtol(over.data, NULL, 10)));
  return runner_ok_rows(runner_limit(runner_order_by(q, "qty", "desc"), 2));
}

RUNNER_HANDLER(getOrder) { return runner_ok_row(runner_select(runner_get("Order", runner_param("id")), "id", "item")); }

RUNNER_HANDLER(nameOrder) {
  runner_json *row = runner_row(runner_get("Order", runner_param("id")));
  return runner_ok(runner_object("item", runner_string(runner_as_text(runner_member(row, "item"))), NULL));
}

RUNNER_HANDLER(updateOrder) {
  runner_op *paid = runner_update("Order", runner_object("status", runner_str("paid"), NULL));
  runner_json *rows = runner_rows(runner_where(paid, "id", "=", runner_string(runner_param("id"))));
  return runner_ok(runner_object("count", runner_int((int64_t)runner_length(rows)), "items", items(rows), NULL));
}

RUNNER_HANDLER(deleteOrder) {
  int64_t n = runner_count(runner_where(runner_remove("Order"), "id", "=", runner_string(runner_param("id"))));
  return n == 0 ? runner_not_found("no such order") : runner_no_content();
}

RUNNER_HANDLER(firstOrder) {
  return runner_ok(runner_row(runner_where(runner_query("Order"), "item", "=", runner_string(runner_param("item")))));
}

RUNNER_HANDLER(pages) {
  runner_json *all = runner_array();
  runner_text cursor = {0};
  do {
    runner_op *q = runner_limit(runner_order_by(runner_select(runner_query("Order"), "item"), "item", "asc"), 3);
    runner_push(all, items(runner_page(runner_after(q, cursor), &cursor)));
  } while (runner_given(cursor));
  return runner_ok(all);
}

RUNNER_HANDLER(conditions) {
  runner_json *letters = runner_push(runner_push(runner_push(runner_array(), runner_str("a")), runner_str("b")), runner_str("c"));
  runner_op *q = runner_where(runner_select(runner_query("Order"), "item"), "item", "in", letters);
  runner_match(q, runner_or(
      runner_field("item", "=", runner_str("a")),
      runner_and(runner_field("qty", ">=", runner_int(2)), runner_not(runner_field("qty", "=", runner_int(3))))));
  return runner_ok(items(runner_rows(q)));
}

RUNNER_HANDLER(missing) {
  runner_text what = runner_param("what");
  runner_json *nine = runner_object("qty", runner_int(9), NULL), *token = runner_string(runner_query_value("token"));
  if (runner_is(what, "where")) runner_count(runner_where(runner_update("Order", nine), "code", "=", token));
  if (runner_is(what, "or"))
    runner_count(runner_match(runner_remove("Order"),
        runner_or(runner_field("item", "=", runner_str("a")), runner_not(runner_field("code", "!=", token)))));
  if (runner_is(what, "nan")) runner_count(runner_where(runner_query("Order"), "qty", ">=", runner_number(NAN)));
  if (runner_is(what, "insert"))
    runner_row(runner_insert("Order", runner_object("item", runner_str("x"), "qty", runner_number(NAN), NULL)));
  if (runner_is(what, "enqueue")) {
    runner_json *to = runner_push(runner_push(runner_array(), runner_int(1)), runner_number(NAN));
    runner_job_enqueue("mail", runner_object("to", to, NULL), NULL);
  }
  if (runner_is(what, "limit")) runner_rows(runner_limit(runner_query("Order"), 0));
  int64_t count = runner_count(runner_where(runner_update("Order", nine), "code", "=", runner_null()));
  return runner_ok(runner_object("count", runner_int(count), NULL));
}

RUNNER_HANDLER(countOrders) {
  runner_op *q = runner_query("Order");
  runner_text start = runner_query_value("q");
  if (runner_given(start)) runner_where(q, "item", "startsWith", runner_string(start));
  return runner_ok(runner_object("count", runner_int(runner_count(q)), NULL));
}

RUNNER_HANDLER(related) {
  runner_json *id = runner_member(runner_row(runner_insert("Order", order("r", 5))), "id"), *two = runner_array();
  runner_push(two, runner_object("order", runner_string(runner_as_text(id)), "text", runner_str("x"), NULL));
  runner_push(two, runner_object("order", runner_string(runner_as_text(id)), "text", runner_str("Y"), NULL));
  runner_rows(runner_insert("Line", two));
  runner_op *lines = runner_order_by(runner_select(runner_query("Line"), "text"), "text", "asc");
  runner_json *read = runner_rows(runner_include(lines, "order", runner_select(runner_query(NULL), "item")));
  runner_op *some = runner_match(runner_select(runner_query(NULL), "text"), runner_ignore_case(runner_field("text", "contains", runner_str("y"))));
  runner_include(runner_limit(runner_order_by(some, "text", "desc"), 1), "order", runner_select(runner_query(NULL), "qty"));
  runner_op *one = runner_include(runner_select(runner_get("Order", runner_as_text(id)), "item"), "lines", some);
  return runner_ok(runner_object("lines", read, "order", runner_row(one), NULL));
}

RUNNER_HANDLER(totals) {
  runner_op *groups = runner_group_by(runner_where(runner_aggregate("Order"), "qty", ">=", runner_int(1)), "status");
  runner_max(runner_min(runner_avg(runner_sum(groups, "qty"), "qty"), "item"), "item", "qty");
  return runner_ok(runner_object("groups", runner_rows(runner_count_rows(groups)), NULL));
}

/* Runs an operation on at most so many rows. */
static runner_json *counts(runner_op *op, int most) {
  bool more = false;
  int64_t count = runner_count_at_most(op, most, &more);
  return runner_object("count", runner_int(count), "more", runner_bool(more), NULL);
}

RUNNER_HANDLER(limited) {
  runner_json *nine = runner_object("qty", runner_int(9), NULL);
  runner_json *changed = counts(runner_where(runner_update("Order", nine), "qty", ">=", runner_int(1)), 2);
  runner_json *removed = counts(runner_where(runner_remove("Order"), "qty", "=", runner_int(9)), 5);
  runner_json *counted = counts(runner_query("Order"), 1);
  runner_json *first = runner_first(runner_where(runner_query("Order"), "item", "=", runner_str("none")));
  runner_json *visits = runner_array();
  const char *times[] = {"2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z"};
  for (int i = 0; i < 3; i++) runner_push(visits, runner_object("at", runner_str(times[i]), NULL));
  runner_rows(runner_insert("Visit", visits));
  runner_json *days = runner_rows(runner_count_rows(runner_group_by_time(runner_aggregate("Visit"), "at", "day", "Europe/Berlin")));
  runner_json *months = runner_rows(runner_count_rows(runner_group_by_time(runner_aggregate("Visit"), "at", "month", NULL)));
  return runner_ok(runner_object("changed", changed, "removed", removed, "counted", counted, "first", first ? first : runner_null(),
      "days", days, "months", months, NULL));
}

/* Adds the code of what just failed. */
static void note(runner_json *codes) {
  const char *code = runner_caught(NULL);
  runner_push(codes, runner_str(code ? code : "none"));
}

RUNNER_HANDLER(everything) {
  runner_json *nine = runner_object("qty", runner_int(9), NULL), *codes = runner_array();
  runner_count(runner_update("Order", nine));
  note(codes);
  runner_count(runner_remove("Order"));
  note(codes);
  int64_t updated = runner_count(runner_every(runner_update("Order", nine)));
  int64_t removed = runner_count(runner_every(runner_remove("Order")));
  return runner_ok(runner_object("codes", codes, "updated", runner_int(updated), "removed", runner_int(removed), NULL));
}

static runner_json *x(const char *code) {
  runner_json *values = runner_object("item", runner_str("x"), NULL);
  return code ? runner_put(values, "code", runner_str(code)) : values;
}

RUNNER_HANDLER(uncaught) {
  runner_text what = runner_param("what");
  if (runner_is(what, "not_found")) runner_row(runner_get("Order", runner_t("none")));
  if (runner_is(what, "denied")) runner_row(runner_insert("Order", x(NULL)));
  if (runner_is(what, "conflict")) runner_row(runner_insert("Order", x("first")));
  if (runner_is(what, "invalid")) runner_rows(runner_query("Nothing"));
  if (runner_is(what, "secret")) runner_secret("NOPE");
  if (runner_is(what, "fetch")) runner_fetch(runner_object("url", runner_str("https://elsewhere.example/"), NULL));
  return runner_no_content();
}

RUNNER_HANDLER(caught) {
  runner_json *codes = runner_array();
  runner_row(runner_get("Order", runner_t("none")));
  note(codes);
  runner_row(runner_insert("Order", x("first")));
  note(codes);
  runner_secret("NOPE");
  note(codes);
  runner_webhook_verify("github", "HOOK");
  note(codes);
  runner_row(runner_insert("Order", x("first")));
  runner_error_info taken = runner_caught_error();
  runner_push(codes, runner_str(runner_format("%s %s %s", taken.operation.data, taken.entity.data, taken.field.data)));
  return runner_ok(codes);
}

RUNNER_HANDLER(variables) {
  runner_json *codes = runner_array();
  runner_var("NOPE");
  note(codes);
  runner_json *origin = runner_var("ORIGIN"), *text = runner_var("NOTE");
  int64_t count = runner_as_int(runner_var("COUNT"), 0);
  runner_json *price = runner_var("PRICE");
  bool on = runner_as_bool(runner_var("ON"), false);
  runner_json *idle = runner_var("IDLE"), *burst = runner_var("BURST");
  return runner_ok(runner_object(
      "origin", origin, "note", text, "count", runner_int(count + 1), "price", price, "on", runner_bool(!on), "idle", idle,
      "burst", burst, "again", text, "other", runner_items(codes), NULL));
}

RUNNER_HANDLER(kept) {
  runner_keep_writes();
  runner_row(runner_insert("Order", runner_object("item", runner_str("kept"), NULL)));
  return runner_error(422, "changed my mind");
}

RUNNER_HANDLER(keys) {
  runner_json *key = runner_api_key_create(runner_object(
      "scope", runner_str("readers"), "name", runner_str("k"), "expiresIn", runner_int(3600),
      "metadata", runner_object("a", runner_int(1), NULL), NULL));
  runner_text id = runner_as_text(runner_member(key, "id")), token = runner_as_text(runner_member(key, "token"));
  runner_json *got = runner_api_key_get(id);
  runner_json *list = runner_api_key_list(runner_object("scope", runner_str("readers"), "limit", runner_int(10), NULL));
  runner_json *rotated = runner_api_key_rotate(id, 60);
  runner_json *revoked = runner_api_key_revoke(id);
  if (runner_failed()) return runner_no_content(); /* the failure is the answer */
  return runner_ok(runner_object(
      "name", runner_member(got, "name"), "token", runner_bool(strncmp(token.data, "cnf_", 4) == 0),
      "metadata", runner_member(got, "metadata"), "listed", runner_int((int64_t)runner_length(runner_member(list, "keys"))),
      "rotating", runner_member(rotated, "status"), "revoked", runner_member(revoked, "status"), NULL));
}

RUNNER_HANDLER(allKeys) {
  runner_api_key_create(runner_object("scope", runner_str("readers"), "name", runner_str("newest"), NULL));
  runner_json *list = runner_api_key_list(NULL), *keys = runner_member(list, "keys"), *last = NULL;
  if (!list) return runner_no_content();
  RUNNER_EACH(key, keys) last = key;
  return runner_ok(runner_object(
      "keys", runner_int((int64_t)runner_length(keys)), "owner", runner_member(last, "owner"), "kind", runner_member(last, "ownerKind"),
      "name", runner_member(last, "name"), "end", runner_bool(runner_is_null(runner_member(list, "nextCursor"))), NULL));
}

RUNNER_HANDLER(secret) { return runner_ok(runner_object("value", runner_string(runner_secret("HOOK")), NULL)); }
