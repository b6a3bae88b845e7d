// What is measured of handlers in C++.
#include "runner.hpp"

using runner::Json;
using runner::object;

RUNNER_HANDLER(hello) { return runner::ok(object({{"message", "hello"}})); }

RUNNER_HANDLER(order) {
  Json in = runner::Request().body();
  Json values = object({{"item", in["item"].text_or("")}, {"qty", in["qty"].integer_or(1)}});
  return runner::created(runner::insert("Order", values).row());
}

RUNNER_HANDLER(hundred) {
  Json rows = runner::Request().body();
  for (Json row : rows) row.put("total", *row["qty"].number() * *row["price"].number());
  return runner::ok(rows);
}
