// What is measured of a CGI program: the work of the handlers in C, said by a
// parameter of the path, read from standard input and written to standard output. It
// takes JSON and rows from the SDK, which a program can use too.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

static runner_json *body(void) {
  static char text[1 << 16];
  runner_text all = {text, fread(text, 1, sizeof text, stdin)};
  const char *why = NULL;
  return runner_parse(all, &why);
}

static int answer(const char *status, const runner_json *value) {
  runner_text text = runner_print(value);
  printf("Status: %s\nContent-Type: application/json\n\n%.*s", status, (int)text.len, text.data);
  return 0;
}

int main(void) {
  const char *what = getenv("RUNNER_PARAM_what");
  if (strcmp(what, "hello") == 0) {
    printf("Content-Type: application/json\n\n{\"message\":\"hello\"}");
    return 0;
  }
  runner_json *in = body();
  if (strcmp(what, "order") == 0) {
    runner_json *values = runner_object(
        "item", runner_string(runner_as_text(runner_member(in, "item"))),
        "qty", runner_int(runner_as_int(runner_member(in, "qty"), 1)), NULL);
    return answer("201 Created", runner_row(runner_insert("Order", values)));
  }
  RUNNER_EACH(row, in) {
    double qty = runner_as_number(runner_member(row, "qty"), 0), price = runner_as_number(runner_member(row, "price"), 0);
    runner_put(row, "total", runner_number(qty * price));
  }
  return answer("200 OK", in);
}
