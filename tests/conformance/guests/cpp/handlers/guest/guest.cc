// The guest in C++ of the conformance suite. What its handlers do is told in
// tests/conformance/README.md.
#include "runner.hpp"

using runner::Json;
using runner::object;
using runner::ok;

RUNNER_HANDLER(echo) {
  runner::Request req;
  return ok(object({
      {"method", req.method()}, {"path", req.path()}, {"raw", req.raw_query()}, {"name", req.param("name")}, {"q", req.query("q")},
      {"all", req.query_all("q")}, {"one", req.header("x-one")}, {"missing", req.header("x-missing")},
      {"bytes", req.raw_body().size()},
  }));
}

RUNNER_HANDLER(body) {
  Json in = runner::Request().body();
  std::string item = in["item"].text_or("");
  if (item.empty()) return runner::bad_request("missing field: item");
  return runner::created(object({{"item", item}, {"qty", in["qty"].integer_or(1)}, {"ratio", in["ratio"].number()}}), "/things/1");
}

RUNNER_HANDLER(raw) { return runner::ok_bytes(runner::Request().raw_body(), "application/octet-stream"); }

RUNNER_HANDLER(answers) {
  std::string what = runner::Request().param("what");
  Json a = object({{"a", 1}});
  if (what == "ok") return ok(a);
  if (what == "null") return ok();
  if (what == "text") return ok("é\n\"<");
  if (what == "created") return runner::created(a);
  if (what == "nowhere") return runner::created(a, "");
  if (what == "location") return runner::created(a, "/a/1");
  if (what == "noContent") return runner::no_content();
  if (what == "redirect") return runner::redirect("/elsewhere");
  if (what == "moved") return runner::redirect("https://example.com/x", 308);
  if (what == "badRequest") return runner::bad_request("no: " + what);
  if (what == "unauthorized") return runner::unauthorized("no: " + what);
  if (what == "problem") return runner::error(402, "no: " + what).with_code("no_credit").with_member("balance", 3);
  if (what == "reserved") return runner::error(402, "no: " + what).with_code("no_credit").with_member("title", "x");
  if (what == "forbidden") return runner::forbidden("no: " + what);
  if (what == "notFound") return runner::not_found("no: " + what);
  if (what == "error") return runner::error(422, "no: error");
  if (what == "empty") return runner::not_found();
  if (what == "headers") return ok(1).with_header("x-a", "1").with_header("x-a", "2");
  if (what == "denied") return ok(1).with_header("date", "x");
  return runner::not_found("unknown");
}

RUNNER_HANDLER(context) {
  runner::Context ctx;
  runner::Auth auth = ctx.auth();
  return ok(object({
      {"requestId", ctx.request_id()}, {"route", ctx.route()}, {"kind", auth.kind}, {"userId", auth.user_id},
      {"tenant", auth.tenant}, {"roles", auth.roles}, {"keyId", auth.key_id}, {"scope", auth.scope},
      {"capability", auth.capability}, {"metadata", auth.metadata}, {"claims", auth.claims}, {"deadline", ctx.deadline() > "2020"},
  }));
}

RUNNER_HANDLER(logs) {
  runner::log(RUNNER_DEBUG, "one");
  runner::log(RUNNER_INFO, "two ü");
  runner::log(RUNNER_WARN, "three");
  runner::log(RUNNER_ERROR, "four");
  return runner::no_content();
}

// A global with a constructor: it runs before the first request.
static std::vector<int> counted(1);

RUNNER_HANDLER(counter) { return ok(object({{"n", ++counted.at(0)}})); }

RUNNER_HANDLER(fail) { return runner::fail("boom"); }

RUNNER_HANDLER(panic) { runner_panic("boom"); }

RUNNER_HANDLER(silent) { return runner::Response({}); }

static Json items(Json rows) {
  Json all = runner::array();
  for (Json row : rows) all.push(row["item"]);
  return all;
}

RUNNER_HANDLER(seed) {
  Json four = runner::array({
      object({{"item", "a"}, {"qty", 1}, {"code", "first"}}), object({{"item", "b"}, {"qty", 2}}),
      object({{"item", "c"}, {"qty", 3}}), object({{"item", "d"}, {"qty", 4}}),
  });
  return ok(items(runner::insert("Order", four).rows()));
}

RUNNER_HANDLER(createOrder) {
  Json in = runner::Request().body(), values = object({{"item", in["item"]}});
  values.put("qty", in["qty"]); // which may be absent
  Json row = runner::insert("Order", values).row();
  return runner::created(row, "/orders/" + row["id"].text_or(""));
}

RUNNER_HANDLER(listOrders) {
  auto orders = runner::query("Order").select({"id", "item", "qty"}).where("status", "=", "open").order_by("qty", "desc").limit(2);
  if (auto over = runner::Request().query("over")) orders.where("qty", ">", strtol(over->c_str(), nullptr, 10));
  return ok(orders);
}

RUNNER_HANDLER(getOrder) { return ok(runner::get("Order", runner::Request().param("id")).select({"id", "item"})); }

RUNNER_HANDLER(nameOrder) { return ok(object({{"item", runner::get("Order", runner::Request().param("id")).row()["item"]}})); }

RUNNER_HANDLER(updateOrder) {
  Json rows = runner::update("Order", object({{"status", "paid"}})).where("id", "=", runner::Request().param("id")).rows();
  return ok(object({{"count", rows.size()}, {"items", items(rows)}}));
}

RUNNER_HANDLER(deleteOrder) {
  if (runner::remove("Order").where("id", "=", runner::Request().param("id")).run() == 0) return runner::not_found("no such order");
  return runner::no_content();
}

RUNNER_HANDLER(firstOrder) { return ok(runner::query("Order").where("item", "=", runner::Request().param("item")).first_or_fail()); }

RUNNER_HANDLER(pages) {
  Json all = runner::array();
  std::optional<std::string> cursor;
  do {
    auto page = runner::query("Order").select({"item"}).order_by("item").limit(3).after(cursor).page();
    all.push(items(page.rows));
    cursor = page.next_cursor;
  } while (cursor);
  return ok(all);
}

RUNNER_HANDLER(conditions) {
  using runner::field;
  auto orders = runner::query("Order").select({"item"}).where("item", "in", runner::array({"a", "b", "c"}));
  orders.match(runner::or_(field("item", "=", "a"), runner::and_(field("qty", ">=", 2), runner::not_(field("qty", "=", 3)))));
  return ok(items(orders.rows()));
}

RUNNER_HANDLER(missing) {
  using runner::field, runner::query, runner::update;
  runner::Request req;
  auto what = req.param("what");
  auto token = req.query("token");
  if (what == "where") update("Order", object({{"qty", 9}})).where("code", "=", token).run();
  if (what == "or") runner::remove("Order").match(runner::or_(field("item", "=", "a"), runner::not_(field("code", "!=", token)))).run();
  if (what == "nan") query("Order").where("qty", ">=", NAN).count();
  if (what == "insert") runner::insert("Order", object({{"item", "x"}, {"qty", NAN}})).row();
  if (what == "enqueue") runner::jobs::enqueue("mail", object({{"to", runner::array({1, NAN})}}));
  if (what == "limit") query("Order").limit(0).rows();
  return ok(object({{"count", update("Order", object({{"qty", 9}})).where("code", "=", nullptr).run()}}));
}

RUNNER_HANDLER(countOrders) {
  auto orders = runner::query("Order");
  if (auto start = runner::Request().query("q")) orders.where("item", "startsWith", *start);
  return ok(object({{"count", orders.count()}}));
}

RUNNER_HANDLER(related) {
  using runner::query;
  Json id = runner::insert("Order", object({{"item", "r"}, {"qty", 5}})).row()["id"];
  Json two = runner::array({object({{"order", id}, {"text", "x"}}), object({{"order", id}, {"text", "Y"}})});
  runner::insert("Line", two).rows();
  auto lines = query("Line").select({"text"}).order_by("text").include("order", query().select({"item"})).rows();
  auto some = query().select({"text"}).match(runner::ignore_case(runner::field("text", "contains", "y"))).order_by("text", "desc").limit(1);
  some.include("order", query().select({"qty"}));
  auto order = runner::get("Order", id.text_or("")).select({"item"}).include("lines", some).row();
  return ok(object({{"lines", lines}, {"order", order}}));
}

RUNNER_HANDLER(totals) {
  auto groups = runner::aggregate("Order").where("qty", ">=", 1).group_by({"status"});
  groups.sum({"qty"}).avg({"qty"}).min({"item"}).max({"item", "qty"}).count();
  return ok(object({{"groups", groups.rows()}}));
}

static Json counts(runner::Counts c) { return object({{"count", c.count}, {"more", c.more}}); }

RUNNER_HANDLER(limited) {
  Json changed = counts(runner::update("Order", object({{"qty", 9}})).where("qty", ">=", 1).limit(2));
  Json removed = counts(runner::remove("Order").where("qty", "=", 9).limit(5));
  Json counted = counts(runner::query("Order").count_at_most(1));
  Json first = runner::query("Order").where("item", "=", "none").first();
  Json visits = runner::array();
  for (const char *at : {"2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z"}) visits.push(object({{"at", at}}));
  runner::insert("Visit", visits).rows();
  Json days = runner::aggregate("Visit").group_by_time("at", "day", "Europe/Berlin").count().rows();
  Json months = runner::aggregate("Visit").group_by_time("at", "month").count().rows();
  return ok(object({{"changed", changed}, {"removed", removed}, {"counted", counted}, {"first", first}, {"days", days}, {"months", months}}));
}

static std::string code() {
  auto failure = runner::caught();
  return failure ? failure->code : "none";
}

RUNNER_HANDLER(everything) {
  Json nine = object({{"qty", 9}}), codes = runner::array();
  runner::update("Order", nine).run();
  codes.push(code());
  runner::remove("Order").run();
  codes.push(code());
  auto updated = runner::update("Order", nine).every().run();
  auto removed = runner::remove("Order").every().run();
  return ok(object({{"codes", codes}, {"updated", updated}, {"removed", removed}}));
}

RUNNER_HANDLER(uncaught) {
  std::string what = runner::Request().param("what");
  if (what == "not_found") runner::get("Order", "none").row();
  if (what == "denied") runner::insert("Order", object({{"item", "x"}})).row();
  if (what == "conflict") runner::insert("Order", object({{"item", "x"}, {"code", "first"}})).row();
  if (what == "invalid") runner::query("Nothing").rows();
  if (what == "secret") runner::Context().secret("NOPE");
  if (what == "fetch") runner::fetch({"https://elsewhere.example/"});
  return runner::no_content();
}

RUNNER_HANDLER(caught) {
  Json codes = runner::array();
  runner::get("Order", "none").row();
  codes.push(code());
  runner::insert("Order", object({{"item", "x"}, {"code", "first"}})).row();
  codes.push(code());
  runner::Context().secret("NOPE");
  codes.push(code());
  runner::webhooks::verify("github", "HOOK");
  codes.push(code());
  runner::insert("Order", object({{"item", "x"}, {"code", "first"}})).row();
  auto taken = runner::caught();
  codes.push(taken->operation + " " + taken->entity + " " + taken->field);
  return ok(codes);
}

RUNNER_HANDLER(variables) {
  runner::Context ctx;
  ctx.var("NOPE");
  std::string other = code();
  Json origin = ctx.var("ORIGIN"), note = ctx.var("NOTE"), count = ctx.var("COUNT"), price = ctx.var("PRICE"), on = ctx.var("ON");
  Json idle = ctx.var("IDLE"), burst = ctx.var("BURST");
  return ok(object({
      {"origin", origin}, {"note", note}, {"count", count.integer_or(0) + 1}, {"price", price}, {"on", !on.boolean_or(false)},
      {"idle", idle}, {"burst", burst}, {"again", note}, {"other", other},
  }));
}

RUNNER_HANDLER(kept) {
  runner::Context().keep_writes();
  runner::insert("Order", object({{"item", "kept"}})).row();
  return runner::error(422, "changed my mind");
}

RUNNER_HANDLER(keys) {
  using namespace runner;
  Json key = api_keys::create(object({{"scope", "readers"}, {"name", "k"}, {"expiresIn", 3600}, {"metadata", object({{"a", 1}})}}));
  std::string id = key["id"].text_or(""), token = key["token"].text_or("");
  Json got = api_keys::get(id), list = api_keys::list(object({{"scope", "readers"}, {"limit", 10}}));
  Json rotated = api_keys::rotate(id, 60), revoked = api_keys::revoke(id);
  return ok(object({
      {"name", got["name"]}, {"token", token.rfind("cnf_", 0) == 0}, {"metadata", got["metadata"]},
      {"listed", list["keys"].size()}, {"rotating", rotated["status"]}, {"revoked", revoked["status"]},
  }));
}

RUNNER_HANDLER(allKeys) {
  using namespace runner;
  api_keys::create(object({{"scope", "readers"}, {"name", "newest"}}));
  Json list = api_keys::list(), last;
  for (Json key : list["keys"]) last = key;
  return ok(object({
      {"keys", list["keys"].size()}, {"owner", last["owner"]}, {"kind", last["ownerKind"]}, {"name", last["name"]},
      {"end", list["nextCursor"].is_null()},
  }));
}

RUNNER_HANDLER(secret) { return ok(object({{"value", runner::Context().secret("HOOK")}})); }

RUNNER_HANDLER(sums) {
  std::string secret = runner::Context().secret("HOOK"), body = runner::Request().raw_body();
  auto digest = runner::digest("SHA-256", body), hmac = runner::hmac("SHA-256", secret, body);
  return ok(object({
      {"digest", digest.hex}, {"hmac", hmac.hex}, {"equal", runner::timing_safe_equal(hmac.base64, hmac.base64)},
      {"other", runner::timing_safe_equal(hmac.base64, "x")}, {"length", secret.size()},
  }));
}

static Json verdict(runner::password::Check found) { return object({{"valid", found.valid}, {"rehash", found.rehash}}); }

RUNNER_HANDLER(passwords) {
  std::string body = runner::Request().raw_body(), hash = runner::password::hash(body);
  auto right = runner::password::verify(body, hash), wrong = runner::password::verify("other", hash);
  auto unknown = runner::password::verify(body, std::nullopt);
  auto old = runner::password::verify("secret", "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW");
  runner::password::verify(body, "plain");
  return ok(object({
      {"hash", hash.rfind("$argon2id$", 0) == 0}, {"right", verdict(right)}, {"wrong", verdict(wrong)},
      {"unknown", verdict(unknown)}, {"old", verdict(old)}, {"malformed", code()},
  }));
}

static Json told(const runner::FetchResponse &answer) {
  Json text;
  for (auto &h : answer.headers)
    if (h.first == "x-told") text = h.second;
  return object({{"status", answer.status}, {"bytes", answer.body.size()}, {"told", text}});
}

RUNNER_HANDLER(calls) {
  runner::Request req;
  std::string service = req.header("x-service").value_or("");
  auto both = runner::fetch_all({
      {service + "/one", "POST", {{"content-type", "application/octet-stream"}, {"x-a", "1"}}, req.raw_body()},
      {service + "/two"},
  });
  if (runner::failed()) return runner::no_content();
  runner::fetch({"https://elsewhere.example/"});
  return ok(object({{"one", told(both[0])}, {"two", told(both[1])}, {"elsewhere", code()}}));
}

RUNNER_HANDLER(redirects) {
  auto moved = [](std::string redirect) {
    runner::FetchRequest request{runner::Request().header("x-service").value_or("") + "/moved"};
    request.redirect = redirect;
    return runner::fetch(request);
  };
  int manual = moved("manual").status, follow = moved("follow").status;
  if (runner::failed()) return runner::no_content();
  moved("error");
  return ok(object({{"manual", manual}, {"follow", follow}, {"error", code()}}));
}

RUNNER_HANDLER(signIn) {
  Json options = object({{"userId", "bob"}});
  if (runner::Request().param("what") == "full")
    options = object({{"userId", "ada"}, {"tenant", "acme"}, {"roles", runner::array({"admin"})}, {"ttl", 600}});
  return ok(runner::sessions::create(options));
}

RUNNER_HANDLER(signOut) {
  runner::sessions::revoke(runner::Request().query("id").value_or("current"));
  return runner::no_content();
}

static Json whose(runner::Request req, std::initializer_list<const char *> names) {
  Json options = object();
  for (const char *name : names)
    if (auto value = req.query(name)) options.put(name, *value);
  if (req.query("all")) options.put("allTenants", true);
  return options;
}

RUNNER_HANDLER(listSessions) {
  runner::Request req;
  Json options = whose(req, {"user", "tenant", "cursor"});
  if (auto limit = req.query("limit")) options.put("limit", std::stoi(*limit));
  Json page = runner::sessions::list(options), first;
  for (Json s : page["sessions"]) {
    std::string created = s["createdAt"].text_or("");
    bool timed = created < s["expiresAt"].text_or("") && created <= s["lastSeenAt"].text_or("");
    first = object({{"userId", s["userId"]}, {"tenant", s["tenant"]}, {"roles", s["roles"]}, {"current", s["current"]}, {"timed", timed}});
    break;
  }
  return ok(object({{"count", page["sessions"].size()}, {"first", first}, {"more", !page["nextCursor"].is_null()}}));
}

RUNNER_HANDLER(endSessions) {
  return ok(object({{"count", runner::sessions::revoke_all(whose(runner::Request(), {"user", "tenant", "except"}))}}));
}

RUNNER_HANDLER(verify) {
  runner::Request req;
  Json delivery = runner::webhooks::verify(req.param("scheme"), req.query("secret").value_or(""));
  return ok(object({{"id", delivery["id"]}, {"timed", delivery["timestamp"].integer_or(0) > 1577836800}}));
}

RUNNER_HANDLER(enqueue) {
  namespace jobs = runner::jobs;
  std::string what = runner::Request().param("what");
  if (what == "unknown") jobs::enqueue("mial", object({}));
  if (what == "missing") jobs::cancel("job_0");
  if (runner::failed()) return runner::no_content();
  auto ada = [] { return object({{"to", "ada"}}); };
  Json first = jobs::enqueue("mail", ada());
  Json second = jobs::enqueue("mail", ada(), object({{"delay", 60}, {"key", "k"}}));
  jobs::enqueue("mail", ada(), object({{"at", "2026-01-31T09:30:00Z"}}));
  Json last = jobs::enqueue("mail", ada(), object({{"key", "k"}}));
  std::string id = second["id"].text_or("");
  bool cancelled = jobs::cancel(id), twice = jobs::cancel(id);
  return ok(object({{"created", first["created"]}, {"again", last["created"]}, {"same", last["id"].text_or("") == id},
                    {"cancelled", cancelled}, {"twice", twice}}));
}

RUNNER_HANDLER(job) {
  auto job = runner::jobs::current();
  if (!job) return runner::not_found("no job");
  return ok(object({{"attempt", job->attempt}, {"scheduledFor", job->scheduled_for}}));
}

RUNNER_HANDLER(mail) { return runner::no_content(); }

RUNNER_HANDLER(bodies) {
  runner::Request req;
  std::string what = req.param("what");
  std::string part(64 << 10, '\0');
  if (what == "echo") {
    runner::Stream out;
    while (std::size_t n = req.read(part.data(), part.size()))
      if (!out.write(std::string_view(part).substr(0, n))) break;
    return out.end();
  }
  if (what == "whole") return ok(object({{"bytes", std::int64_t(req.raw_body().size())}}));
  runner::insert("Order", object({{"item", "body"}})).row();
  std::int64_t bytes = 0, sum = 0;
  while (std::size_t n = req.read(part.data(), part.size())) {
    bytes += std::int64_t(n);
    for (std::size_t i = 0; i < n; i++) sum += static_cast<unsigned char>(part[i]);
  }
  return ok(object({{"bytes", bytes}, {"sum", sum}}));
}

static Json insert_document(Json title, Json scan) {
  return runner::insert("Document", object({{"title", title}, {"scan", scan}})).row();
}

RUNNER_HANDLER(files) {
  auto form = runner::Request().form();
  auto scan = insert_document(form.get("title"), form.file("scan"))["scan"].file().value_or(runner::File());
  auto note = insert_document("note", runner::create_file("note.md", "a note ü", "text/markdown"))["scan"]["size"];
  return ok(object({{"text", scan.read()}, {"name", scan.name}, {"type", scan.type}, {"size", scan.size}, {"note", note},
                    {"other", form.file("other").has_value()}}));
}

RUNNER_HANDLER(sent) {
  auto file = runner::Request().form().file().value_or(runner::UploadedFile());
  return runner::send_file(file, {201, "attachment", "copy.txt", "private"}).with_header("x-sent", "yes");
}

RUNNER_HANDLER(linked) {
  auto scan = insert_document("linked", runner::Request().form().file())["scan"].file().value_or(runner::File());
  return ok(object({{"link", scan.sign(600, "attachment", "copy.txt").rfind("/_files/", 0) == 0}}));
}

RUNNER_HANDLER(streams) {
  runner::Request req;
  std::string what = req.param("what");
  auto insert_order = [](const char *item) { runner::insert("Order", object({{"item", item}})).row(); };
  if (what == "parts" || what == "fails") insert_order("before");
  if (what == "events") {
    std::string last = "last " + req.header("last-event-id").value_or("none");
    auto out = runner::Stream::events();
    out.event({last, "tick", "1"});
    out.event({"a\r\nb\rc\n\nd"});
    out.event({"", "", "2", 1500});
    out.event({"", "bye"});
    return out.end();
  }
  if (what == "refused") {
    auto out = runner::Stream::events();
    out.event({"x", "a\nb"});
    return out.end();
  }
  if (what == "forever") {
    runner::Stream out;
    while (out.write(std::string(64 << 10, '\0'))) {
    }
    return out.end();
  }
  runner::Stream out(200, {{"content-type", "text/plain"}});
  out.write("one\n");
  if (what == "fails") return runner::fail("boom");
  if (what == "uncaught") {
    runner::get("Order", "none").row();
    return out.end();
  }
  while (runner::query("Order").where("item", "=", "go").count() == 0 && !runner::failed())
    runner::call("sleep", object({{"seconds", 0.01}}));
  insert_order("after");
  out.write("two\n");
  out.write("three\n");
  return out.end();
}
