/* What is measured of handlers in C. */
#include "runner.h"

RUNNER_HANDLER(hello) { return runner_ok(runner_object("message", runner_str("hello"), NULL)); }

RUNNER_HANDLER(order) {
  runner_json *in = runner_body();
  runner_json *values = runner_object(
      "item", runner_string(runner_as_text(runner_member(in, "item"))),
      "qty", runner_int(runner_as_int(runner_member(in, "qty"), 1)), NULL);
  return runner_created(runner_row(runner_insert("Order", values)), NULL);
}

RUNNER_HANDLER(hundred) {
  runner_json *rows = runner_body();
  RUNNER_EACH(row, rows) {
    double qty = runner_as_number(runner_member(row, "qty"), 0), price = runner_as_number(runner_member(row, "price"), 0);
    runner_put(row, "total", runner_number(qty * price));
  }
  return runner_ok(rows);
}
