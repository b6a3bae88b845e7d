/* Answers in parts. */
#include "guest.h"

static runner_json *insert_order(const char *item) {
  return runner_row(runner_insert("Order", runner_object("item", runner_str(item), NULL)));
}

static bool text(const char *part) { return runner_write(part, strlen(part)); }

static runner_response parts(runner_text what) {
  text("one\n");
  if (runner_is(what, "fails")) return runner_fail("boom");
  if (runner_is(what, "uncaught")) {
    runner_row(runner_get("Order", runner_t("none")));
    return runner_end();
  }
  while (runner_count(runner_where(runner_query("Order"), "item", "=", runner_str("go"))) == 0 && !runner_failed())
    runner_call("sleep", runner_object("seconds", runner_number(0.01), NULL));
  insert_order("after");
  text("two\n");
  text("three\n");
  return runner_end();
}

RUNNER_HANDLER(bodies) {
  static unsigned char part[64 << 10];
  runner_text what = runner_param("what");
  size_t n;
  if (runner_is(what, "echo")) {
    runner_begin(200);
    while ((n = runner_read_body(part, sizeof part)) > 0 && runner_write(part, n)) {
    }
    return runner_end();
  }
  if (runner_is(what, "whole")) return runner_ok(runner_object("bytes", runner_int((int64_t)runner_raw_body().len), NULL));
  insert_order("body");
  int64_t bytes = 0, sum = 0;
  while ((n = runner_read_body(part, sizeof part)) > 0) {
    bytes += (int64_t)n;
    for (size_t i = 0; i < n; i++) sum += part[i];
  }
  return runner_ok(runner_object("bytes", runner_int(bytes), "sum", runner_int(sum), NULL));
}

RUNNER_HANDLER(streams) {
  static const char zeros[64 << 10];
  runner_text what = runner_param("what"), last = runner_header("last-event-id");
  if (runner_is(what, "parts") || runner_is(what, "fails")) insert_order("before");
  if (runner_is(what, "events")) {
    runner_begin_events();
    const char *told = runner_format("last %s", runner_given(last) ? last.data : "none");
    runner_write_event((runner_event){.event = "tick", .id = "1", .data = runner_t(told)});
    runner_write_event((runner_event){.data = runner_t("a\r\nb\rc\n\nd")});
    runner_write_event((runner_event){.id = "2", .retry = 1500});
    runner_write_event((runner_event){.event = "bye"});
    return runner_end();
  }
  if (runner_is(what, "refused")) {
    runner_begin_events();
    runner_write_event((runner_event){.event = "a\nb", .data = runner_t("x")});
    return runner_end();
  }
  if (runner_is(what, "forever")) {
    runner_begin(200);
    while (runner_write(zeros, sizeof zeros)) {
    }
    return runner_end();
  }
  runner_add_header("content-type", "text/plain");
  runner_begin(200);
  return parts(what);
}
