/* The handlers of the app: one for each name in the schema. */
#include "runner.h"

#include "greeting.h"

RUNNER_HANDLER(hello) {
  runner_text name = runner_param("name");
  if (!greeting_possible(name.data)) return runner_bad_request("there is nobody to greet");
  return runner_ok(runner_object(
      "name", runner_string(name),
      "text", runner_str(runner_format("hello %s", name.data)), NULL));
}

/* The newest greetings, of all or of ?name=. */
RUNNER_HANDLER(listGreetings) {
  runner_op *greetings = runner_select(runner_query("Greeting"), "name", "text");
  runner_limit(runner_order_by(greetings, "placedAt", "desc"), 20);
  runner_text name = runner_query_value("name");
  if (name.len > 0) runner_where(greetings, "name", "=", runner_string(name));
  return runner_ok_rows(greetings);
}

/* Keeps a greeting. The body fits GreetingInput: the runner has looked at it. */
RUNNER_HANDLER(createGreeting) {
  runner_json *row = runner_row(runner_insert("Greeting", runner_body()));
  runner_log(RUNNER_INFO, "greeting placed by %s", runner_auth().key_id.data);
  return runner_created(row, NULL);
}
