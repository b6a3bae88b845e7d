/* The C SDK's guest of the conformance suite. tests/conformance/README.md describes its handlers. */
#include "guest.h"

RUNNER_HANDLER(echo) {
  return runner_ok(runner_object(
      "method", runner_string(runner_method()), "path", runner_string(runner_path()), "raw", runner_string(runner_raw_query()),
      "name", runner_string(runner_param("name")),
      "q", runner_string(runner_query_value("q")), "all", runner_query_all("q"),
      "one", runner_string(runner_header("x-one")), "missing", runner_string(runner_header("x-missing")),
      "bytes", runner_int((int64_t)runner_raw_body().len), NULL));
}

RUNNER_HANDLER(body) {
  runner_json *in = runner_body();
  runner_text item = runner_as_text(runner_member(in, "item"));
  if (item.len == 0) return runner_bad_request("missing field: item");
  runner_json *ratio = runner_member(in, "ratio");
  return runner_created(runner_object(
      "item", runner_string(item), "qty", runner_int(runner_as_int(runner_member(in, "qty"), 1)),
      "ratio", runner_is_null(ratio) ? runner_null() : runner_number(runner_as_number(ratio, 0)), NULL), "/things/1");
}

RUNNER_HANDLER(raw) {
  return runner_with_header(runner_ok_bytes(runner_raw_body()), "content-type", "application/octet-stream");
}

RUNNER_HANDLER(answers) {
  runner_text what = runner_param("what");
  runner_json *a = runner_object("a", runner_int(1), NULL);
  if (runner_is(what, "ok")) return runner_ok(a);
  if (runner_is(what, "null")) return runner_ok(NULL);
  if (runner_is(what, "text")) return runner_ok(runner_str("é\n\"<"));
  if (runner_is(what, "created")) return runner_created(a, NULL);
  if (runner_is(what, "nowhere")) return runner_created(a, "");
  if (runner_is(what, "location")) return runner_created(a, "/a/1");
  if (runner_is(what, "noContent")) return runner_no_content();
  if (runner_is(what, "redirect")) return runner_redirect("/elsewhere");
  if (runner_is(what, "moved")) return runner_redirect_with(308, "https://example.com/x");
  if (runner_is(what, "badRequest")) return runner_bad_request("no: %s", what.data);
  if (runner_is(what, "unauthorized")) return runner_unauthorized("no: %s", what.data);
  if (runner_is(what, "problem"))
    return runner_with_member(runner_with_code(runner_error(402, "no: %s", what.data), "no_credit"), "balance", runner_int(3));
  if (runner_is(what, "reserved"))
    return runner_with_member(runner_with_code(runner_error(402, "no: %s", what.data), "no_credit"), "title", runner_str("x"));
  if (runner_is(what, "forbidden")) return runner_forbidden("no: %s", what.data);
  if (runner_is(what, "notFound")) return runner_not_found("no: %s", what.data);
  if (runner_is(what, "error")) return runner_error(422, "no: error");
  if (runner_is(what, "empty")) return runner_not_found("%s", "");
  if (runner_is(what, "headers")) return runner_with_header(runner_with_header(runner_ok(runner_int(1)), "x-a", "1"), "x-a", "2");
  if (runner_is(what, "denied")) return runner_with_header(runner_ok(runner_int(1)), "date", "x");
  return runner_not_found("unknown");
}

RUNNER_HANDLER(context) {
  runner_caller auth = runner_auth();
  return runner_ok(runner_object(
      "requestId", runner_string(runner_request_id()), "route", runner_string(runner_route()),
      "kind", runner_string(auth.kind), "userId", runner_string(auth.user_id), "tenant", runner_string(auth.tenant),
      "roles", auth.roles, "keyId", runner_string(auth.key_id), "scope", runner_string(auth.scope),
      "capability", runner_string(auth.capability), "metadata", auth.metadata ? auth.metadata : runner_null(),
      "claims", auth.claims ? auth.claims : runner_null(),
      "deadline", runner_bool(runner_given(runner_deadline()) && strcmp(runner_deadline().data, "2020") > 0), NULL));
}

RUNNER_HANDLER(logs) {
  runner_log(RUNNER_DEBUG, "one");
  runner_log(RUNNER_INFO, "two %s", "ü");
  runner_log(RUNNER_WARN, "three");
  runner_log(RUNNER_ERROR, "four");
  return runner_no_content();
}

RUNNER_HANDLER(counter) {
  static int n;
  n++;
  return runner_ok(runner_object("n", runner_int(n), NULL));
}

RUNNER_HANDLER(fail) { return runner_fail("%s", "boom"); }

RUNNER_HANDLER(panic) { runner_panic("boom"); }

RUNNER_HANDLER(silent) {
  runner_response none = {0};
  return none;
}

RUNNER_HANDLER(sums) {
  runner_text secret = runner_secret("HOOK"), body = runner_raw_body();
  runner_json *digest = runner_digest("SHA-256", body), *hmac = runner_hmac_with_secret("SHA-256", "HOOK", body);
  runner_text hex = runner_as_text(runner_member(hmac, "hex"));
  return runner_ok(runner_object(
      "digest", runner_member(digest, "hex"), "hmac", runner_string(hex),
      "equal", runner_bool(runner_timing_safe_equal(hex, hex)), "other", runner_bool(runner_timing_safe_equal(hex, runner_t("x"))),
      "length", runner_int((int64_t)secret.len), NULL));
}

RUNNER_HANDLER(passwords) {
  runner_text body = runner_raw_body(), hash = runner_password_hash(body);
  runner_json *right = runner_password_verify(body, hash), *wrong = runner_password_verify(runner_t("other"), hash);
  runner_json *unknown = runner_password_verify(body, runner_t(NULL));
  runner_json *old = runner_password_verify(runner_t("secret"), runner_t("$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"));
  if (runner_failed()) return runner_no_content(); /* the failure is the answer */
  runner_password_verify(body, runner_t("plain"));
  return runner_ok(runner_object(
      "hash", runner_bool(hash.len > 10 && !memcmp(hash.data, "$argon2id$", 10)), "right", right, "wrong", wrong,
      "unknown", unknown, "old", old, "malformed", runner_str(runner_caught(NULL)), NULL));
}

static runner_json *told(const runner_json *answer) {
  runner_json *text = NULL;
  RUNNER_EACH(header, runner_member(answer, "headers"))
    if (runner_is(runner_as_text(header->first), "x-told")) text = header->last;
  return runner_object("status", runner_member(answer, "status"),
      "bytes", runner_int((int64_t)runner_as_bytes(runner_member(answer, "body")).len), "told", text, NULL);
}

RUNNER_HANDLER(calls) {
  const char *service = runner_header("x-service").data;
  runner_json *headers = runner_array();
  runner_push(headers, runner_push(runner_push(runner_array(), runner_str("content-type")), runner_str("application/octet-stream")));
  runner_push(headers, runner_push(runner_push(runner_array(), runner_str("x-a")), runner_str("1")));
  int first = runner_start("fetch", runner_object("method", runner_str("POST"), "url", runner_str(runner_format("%s/one", service)),
      "headers", headers, "body", runner_bytes(runner_raw_body()), NULL));
  int second = runner_start("fetch", runner_object("url", runner_str(runner_format("%s/two", service)), NULL));
  runner_json *one = runner_take(first), *two = runner_take(second);
  if (runner_failed()) return runner_no_content(); /* the failure is the answer */
  runner_fetch(runner_object("url", runner_str("https://elsewhere.example/"), NULL));
  return runner_ok(runner_object("one", told(one), "two", told(two), "elsewhere", runner_str(runner_caught(NULL)), NULL));
}

static runner_json *moved(const char *redirect) {
  const char *url = runner_format("%s/moved", runner_header("x-service").data);
  return runner_fetch(runner_object("url", runner_str(url), "redirect", runner_str(redirect), NULL));
}

RUNNER_HANDLER(redirects) {
  runner_json *manual = moved("manual"), *follow = moved("follow");
  if (runner_failed()) return runner_no_content(); /* the failure is the answer */
  moved("error");
  return runner_ok(runner_object("manual", runner_member(manual, "status"), "follow", runner_member(follow, "status"),
      "error", runner_str(runner_caught(NULL)), NULL));
}

RUNNER_HANDLER(signIn) {
  runner_json *options = runner_object("userId", runner_str("bob"), NULL);
  if (runner_is(runner_param("what"), "full"))
    options = runner_object("userId", runner_str("ada"), "tenant", runner_str("acme"),
        "roles", runner_push(runner_array(), runner_str("admin")), "ttl", runner_int(600), NULL);
  return runner_ok(runner_session_create(options));
}

RUNNER_HANDLER(signOut) {
  runner_text id = runner_query_value("id");
  runner_session_revoke(runner_given(id) ? id : runner_t("current"));
  return runner_no_content();
}

/* Puts the query values that are given. */
static runner_json *whose(const char *more, const char *other) {
  runner_json *options = runner_make(RUNNER_OBJECT);
  const char *names[] = {"user", "tenant", more, other};
  for (size_t i = 0; i < 4; i++) {
    runner_text value = runner_query_value(names[i] ? names[i] : "");
    if (names[i] && runner_given(value)) runner_put(options, names[i], runner_string(value));
  }
  if (runner_given(runner_query_value("all"))) runner_put(options, "allTenants", runner_bool(true));
  return options;
}

RUNNER_HANDLER(listSessions) {
  runner_json *options = whose("cursor", NULL);
  runner_text limit = runner_query_value("limit");
  if (runner_given(limit)) runner_put(options, "limit", runner_parse(limit, NULL));
  runner_json *page = runner_session_list(options), *all = runner_member(page, "sessions"), *first = runner_items(all);
  const char *created = first ? runner_as_text(runner_member(first, "createdAt")).data : NULL;
  bool timed = created && strncmp(created, runner_as_text(runner_member(first, "expiresAt")).data, 24) < 0 &&
      strncmp(created, runner_as_text(runner_member(first, "lastSeenAt")).data, 24) <= 0;
  if (first)
    first = runner_object("userId", runner_member(first, "userId"), "tenant", runner_member(first, "tenant"), "roles", runner_member(first, "roles"),
        "current", runner_member(first, "current"), "timed", runner_bool(timed), NULL);
  return runner_ok(runner_object("count", runner_int((int64_t)runner_length(all)), "first", first ? first : runner_null(),
      "more", runner_bool(!runner_is_null(runner_member(page, "nextCursor"))), NULL));
}

RUNNER_HANDLER(endSessions) {
  return runner_ok(runner_object("count", runner_int(runner_session_revoke_all(whose("except", NULL))), NULL));
}

RUNNER_HANDLER(verify) {
  runner_json *delivery = runner_webhook_verify(runner_param("scheme").data, runner_query_value("secret").data);
  bool timed = runner_as_int(runner_member(delivery, "timestamp"), 0) > 1577836800;
  return runner_ok(runner_object("id", runner_member(delivery, "id"), "timed", runner_bool(timed), NULL));
}

static runner_json *ada(void) { return runner_object("to", runner_str("ada"), NULL); }

RUNNER_HANDLER(enqueue) {
  runner_text what = runner_param("what");
  if (runner_is(what, "unknown")) runner_job_enqueue("mial", runner_make(RUNNER_OBJECT), NULL);
  if (runner_is(what, "missing")) runner_job_cancel(runner_t("job_0"));
  if (runner_failed()) return runner_no_content(); /* the failure is the answer */
  runner_json *first = runner_job_enqueue("mail", ada(), NULL);
  runner_json *second = runner_job_enqueue("mail", ada(), runner_object("delay", runner_int(60), "key", runner_str("k"), NULL));
  runner_job_enqueue("mail", ada(), runner_object("at", runner_str("2026-01-31T09:30:00Z"), NULL));
  runner_json *last = runner_job_enqueue("mail", ada(), runner_object("key", runner_str("k"), NULL));
  runner_text id = runner_as_text(runner_member(second, "id"));
  bool cancelled = runner_job_cancel(id), twice = runner_job_cancel(id);
  return runner_ok(runner_object("created", runner_member(first, "created"), "again", runner_member(last, "created"),
      "same", runner_bool(runner_is(runner_as_text(runner_member(last, "id")), id.data)),
      "cancelled", runner_bool(cancelled), "twice", runner_bool(twice), NULL));
}

RUNNER_HANDLER(job) {
  runner_job job = runner_current_job();
  if (!job.id.data) return runner_not_found("no job");
  return runner_ok(runner_object("attempt", runner_int(job.attempt), "scheduledFor", runner_string(job.scheduled_for), NULL));
}

RUNNER_HANDLER(mail) { return runner_no_content(); }
