/*
 * runner.hpp: the SDK for handlers written in C++ (17 and later), on top of runner.h.
 *
 *     #include "runner.hpp"
 *
 *     RUNNER_HANDLER(createOrder) {
 *       runner::Request req;
 *       runner::Json in = req.body();
 *       auto item = in["item"].text_or("");
 *       if (item.empty()) return runner::bad_request("missing field: item");
 *       auto row = runner::insert("Order", runner::object({{"item", item}, {"qty", in["qty"].integer_or(1)}})).row();
 *       return runner::created(row, "/orders/" + row["id"].text_or(""));
 *     }
 *
 * Nothing throws. A failed operation, or a body that is not JSON, fails the request:
 * the operations after it are not run and give nothing, and the failure is the
 * request's answer whatever the handler returns. runner::caught() gives it to a
 * handler that has something else to do. See runner.h, for the rest.
 */
#ifndef RUNNER_HPP
#define RUNNER_HPP

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runner.h"

namespace runner {

/* A text of the request's own memory. */
inline runner_text keep(std::string_view s) { return runner_copy(s.data(), s.size()); }

/* A text that ends with its zero byte. One with a zero byte inside would be cut: it fails. */
inline const char *c_string(std::string_view s) {
  if (s.find('\0') != s.npos) runner_note("invalid", runner_t("a header or a name has a zero byte"));
  return keep(s).data;
}

inline std::optional<std::string> text_of(runner_text t) {
  if (!t.data) return std::nullopt;
  return std::string(t.data, t.len);
}

struct File;

/* A JSON value, or none: what is absent can be asked like everything else. Copies are
 * the same value. It lives as long as the request. */
class Json {
 public:
  Json() = default;
  Json(runner_json *value) : value_(value) {}
  Json(std::nullptr_t) : value_(runner_null()) {}
  Json(const char *s) : value_(runner_string(s ? keep(s) : runner_t(nullptr))) {}
  Json(const std::string &s) : value_(runner_string(keep(s))) {}
  Json(std::string_view s) : value_(runner_string(keep(s))) {}
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Json(T n) : value_(of(n)) {}
  /* Null without a value, which a condition does not accept: nullptr compares with null. */
  template <class T>
  Json(const std::optional<T> &v) : value_(v ? Json(*v).value_ : runner_string(runner_t(nullptr))) {}
  template <class T>
  Json(const std::vector<T> &items) : value_(runner_array()) {
    for (const T &item : items) push(Json(item));
  }

  /* A member of an object; absent when there is none. */
  Json operator[](const char *name) const { return runner_member(value_, name); }

  explicit operator bool() const { return value_ != nullptr; }
  bool is_null() const { return runner_is_null(value_); }
  runner_kind kind() const { return value_ ? value_->kind : RUNNER_NULL; }

  std::optional<std::string> text() const { return text_of(runner_as_text(value_)); }
  std::string text_or(std::string_view otherwise) const { return text().value_or(std::string(otherwise)); }
  std::optional<std::int64_t> integer() const {
    auto n = runner_as_int(value_, 0);
    if (n == 0 && runner_as_int(value_, 1) == 1) return std::nullopt;
    return n;
  }
  std::int64_t integer_or(std::int64_t otherwise) const { return runner_as_int(value_, otherwise); }
  std::optional<double> number() const {
    if (kind() != RUNNER_NUMBER) return std::nullopt;
    return runner_as_number(value_, 0);
  }
  bool boolean_or(bool otherwise) const { return runner_as_bool(value_, otherwise); }
  /* The file of a row's field. */
  std::optional<File> file() const;

  /* Adds a member, or an item. */
  Json &put(std::string_view name, Json value) {
    runner_put_text(value_, keep(name), value.value_);
    return *this;
  }
  Json &push(Json item) {
    runner_push(value_, item.value_);
    return *this;
  }

  std::size_t size() const { return runner_length(value_); }
  std::string name() const { return value_ ? text_of(value_->name).value_or("") : ""; }
  std::string print() const { return *text_of(runner_print(value_)); }

  class iterator {
   public:
    explicit iterator(runner_json *at) : at_(at) {}
    Json operator*() const { return at_; }
    iterator &operator++() {
      at_ = at_->next;
      return *this;
    }
    bool operator!=(const iterator &o) const { return at_ != o.at_; }

   private:
    runner_json *at_;
  };
  iterator begin() const { return iterator(runner_items(value_)); }
  iterator end() const { return iterator(nullptr); }

  runner_json *raw() const { return value_; }

 private:
  template <class T>
  static runner_json *of(T n) {
    if constexpr (std::is_same_v<T, bool>) return runner_bool(n);
    else if constexpr (std::is_floating_point_v<T>) return runner_number(n);
    else if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) return number_of(n);
    else return runner_int(n);
  }
  static runner_json *number_of(std::uint64_t n) {
    runner_json *v = runner_int(0);
    v->text = runner_t(runner_format("%llu", static_cast<unsigned long long>(n)));
    return v;
  }
  runner_json *value_ = nullptr;
};

/* An object of names and values; what is absent becomes null. */
inline Json object(std::initializer_list<std::pair<const char *, Json>> members = {}) {
  Json o = runner_make(RUNNER_OBJECT);
  for (auto &m : members) o.put(m.first, m.second ? m.second : Json(nullptr));
  return o;
}
inline Json array(std::initializer_list<Json> items = {}) {
  Json a = runner_array();
  for (auto &item : items) a.push(item);
  return a;
}

/* A file: the value of a field of type file, or one that the request has uploaded or made. A row gets
 * it as a value: object({{"title", title}, {"photo", photo}}). */
struct File {
  std::string id;
  std::string name; /* a text for people, never a path */
  std::string type; /* the media type, found from the bytes, without parameters */
  std::int64_t size = 0;
  std::string sha256; /* the digest of the bytes, in hexadecimal digits */

  static File of(const runner_file &f) {
    return {text_of(f.id).value_or(""), text_of(f.name).value_or(""), text_of(f.type).value_or(""), f.size,
            text_of(f.sha256).value_or("")};
  }
  runner_file raw() const {
    runner_file f = runner_as_file(nullptr);
    f.id = keep(id);
    f.name = keep(name);
    f.type = keep(type);
    f.size = size;
    f.sha256 = keep(sha256);
    return f;
  }
  operator Json() const { return runner_file_json(raw()); }

  /* All bytes. */
  std::string read() const { return text_of(runner_file_read(raw())).value_or(""); }
  /* Reads bytes from an offset on, at most cap, and returns how many; 0 behind the end, or if it failed. */
  std::size_t read(std::int64_t offset, void *to, std::size_t cap) const {
    return runner_file_read_part(raw(), offset, to, cap);
  }
  /* Makes a link to the file of a row: see runner_file_sign. */
  std::string sign(std::int64_t seconds, std::string_view disposition = {}, std::string_view name = {}) const {
    auto given = [](std::string_view s) { return s.empty() ? nullptr : c_string(s); };
    return text_of(runner_file_sign(raw(), seconds, given(disposition), given(name))).value_or("");
  }
};
inline std::optional<File> Json::file() const {
  runner_file f = runner_as_file(value_);
  if (!f.id.data) return std::nullopt;
  return File::of(f);
}

/* A file of a Form. */
struct UploadedFile : File {
  std::string field;    /* the name of its field, empty for a body that is one file */
  std::string declared; /* the media type that the client has declared, empty without one */
};

/* What the client has uploaded. Its files are gone after the request unless a row that is committed
 * has them. */
struct Form {
  std::vector<std::pair<std::string, std::string>> fields; /* names and texts, in the order of the body */
  std::vector<UploadedFile> files;

  /* The first text of a field. */
  std::optional<std::string> get(std::string_view name) const {
    for (auto &f : fields) if (f.first == name) return f.second;
    return std::nullopt;
  }
  std::vector<std::string> get_all(std::string_view name) const {
    std::vector<std::string> all;
    for (auto &f : fields) if (f.first == name) all.push_back(f.second);
    return all;
  }
  /* The first file of a field; without a name that of a body that is one file. */
  std::optional<UploadedFile> file(std::string_view field = "") const {
    for (auto &f : files) if (f.field == field) return f;
    return std::nullopt;
  }
};

/* Makes a file. The type is found from the bytes; type names that of a text or of unknown bytes more
 * closely, as "text/markdown". The file is gone after the request unless a row that is committed has it. */
inline File create_file(std::string_view name, std::string_view contents, std::string_view type = {}) {
  return File::of(runner_file_create(c_string(name), c_string(type), {contents.data(), contents.size()}));
}

/* Makes a file in parts. Each is sent at once: write more than a few bytes.
 *
 *     runner::FileWriter out("orders.csv", "text/csv");
 *     while (auto part = next_part()) out.write(*part);
 *     runner::File orders = out.end();
 */
class FileWriter {
 public:
  explicit FileWriter(std::string_view name, std::string_view type = {}) : writer_(runner_file_open(c_string(name), c_string(type))) {}
  /* False: something has failed. */
  bool write(std::string_view part) { return runner_file_write(writer_, part.data(), part.size()); }
  File end() { return File::of(runner_file_end(writer_)); }

 private:
  std::int64_t writer_;
};

/* The request at hand. */
class Request {
 public:
  std::string method() const { return text_of(runner_method()).value_or(""); }
  /* The raw path, without the query. */
  std::string path() const { return text_of(runner_path()).value_or(""); }
  /* A path parameter, decoded; those of the route are never empty. */
  std::string param(const char *name) const { return text_of(runner_param(name)).value_or(""); }
  /* The first query value of a name. */
  std::optional<std::string> query(const char *name) const { return text_of(runner_query_value(name)); }
  /* The query as it was sent, without its "?". Signatures of URLs are made of it. */
  std::string raw_query() const { return text_of(runner_raw_query()).value_or(""); }
  std::vector<std::string> query_all(const char *name) const {
    std::vector<std::string> all;
    for (Json value : Json(runner_query_all(name))) all.push_back(value.text_or(""));
    return all;
  }
  /* A header by its name in lower case. */
  std::optional<std::string> header(const char *name) const { return text_of(runner_header(name)); }
  /* The exact body, for signatures. */
  std::string raw_body() const { return text_of(runner_raw_body()).value_or(""); }
  /* Reads the next bytes of the body: see runner_read_body. */
  std::size_t read(void *to, std::size_t cap) const { return runner_read_body(to, cap); }
  /* The JSON body; an empty one and null are an object without members. */
  Json body() const { return runner_body(); }
  /* What the client has uploaded, on a route with `upload: on`; elsewhere it fails as denied. */
  Form form() const {
    Form form;
    std::size_t count;
    const runner_pair *fields = runner_form_fields(&count);
    for (std::size_t i = 0; i < count; i++) form.fields.emplace_back(text_of(fields[i].name).value_or(""), text_of(fields[i].value).value_or(""));
    const runner_file *files = runner_form_files(&count);
    for (std::size_t i = 0; i < count; i++)
      form.files.push_back({File::of(files[i]), text_of(files[i].field).value_or(""), text_of(files[i].declared).value_or("")});
    return form;
  }
};

/* Who calls, as the host found out. */
struct Auth {
  std::string kind;
  std::optional<std::string> user_id, tenant, key_id, scope, capability;
  std::vector<std::string> roles;
  Json metadata, claims;
};

/* What a handler knows and may do beside the request itself. */
class Context {
 public:
  std::string request_id() const { return text_of(runner_request_id()).value_or(""); }
  std::string route() const { return text_of(runner_route()).value_or(""); }
  /* When the request's time is over (RFC 3339). */
  std::string deadline() const { return text_of(runner_deadline()).value_or(""); }
  Auth auth() const {
    runner_caller c = runner_auth();
    Auth a{text_of(c.kind).value_or(""), text_of(c.user_id), text_of(c.tenant), text_of(c.key_id), text_of(c.scope),
           text_of(c.capability), {}, c.metadata, c.claims};
    for (Json role : Json(c.roles)) a.roles.push_back(role.text_or(""));
    return a;
  }
  /* The value of a secret that the schema declares. */
  std::string secret(const char *name) const { return text_of(runner_secret(name)).value_or(""); }
  /* The value of a variable that the schema declares: a number for an int, seconds for a
   * duration, true or false for a bool, and text for the others. */
  Json var(const char *name) const { return runner_var(name); }
  /* Commits the writes of this request with any status. */
  void keep_writes() const { runner_keep_writes(); }
};

/* Writes a line to the server's log. */
inline void log(runner_level level, std::string_view text) {
  runner_host_log(static_cast<std::uint32_t>(level), text.data(), static_cast<std::uint32_t>(text.size()));
}

/* What failed. */
struct Failure {
  std::string code, message;
  std::string operation;
  /* Of an operation on rows; the fields of @@unique are separated by commas. */
  std::string entity, field;
};
/* The failure, which is forgotten then. */
inline std::optional<Failure> caught() {
  runner_error_info e = runner_caught_error();
  if (!e.code) return std::nullopt;
  return Failure{e.code, text_of(e.message).value_or(""), text_of(e.operation).value_or(""), text_of(e.entity).value_or(""),
                 text_of(e.field).value_or("")};
}
inline bool failed() { return runner_failed(); }

/* A handler's answer, made by one of the helpers. */
class Response : public runner_response {
 public:
  Response(runner_response r) : runner_response(r) {}
  Response with_header(std::string_view name, std::string_view value) const {
    return runner_with_header(*this, c_string(name), c_string(value));
  }
  /* See runner_with_code and runner_with_member. */
  Response with_code(std::string_view code) const { return runner_with_code(*this, c_string(code)); }
  Response with_member(std::string_view name, Json value) const { return runner_with_member(*this, c_string(name), value.raw()); }
};

/* An operation; what runs it is in the classes below. */
class Operation {
 public:
  explicit Operation(runner_op *op) : op_(op) {}
  runner_op *raw() const { return op_; }

 protected:
  runner_op *op_;
};

/* What a row must be like. A value that is missing, such as an optional without a value, fails
 * as invalid: nullptr compares with null. */
inline Json field(const char *name, const char *operation, Json value) {
  return runner_field(keep(name).data, keep(operation).data, value.raw());
}
/* The same comparison with =, startsWith or contains without regard to case. */
inline Json ignore_case(Json comparison) { return runner_ignore_case(comparison.raw()); }
inline Json not_(Json condition) { return runner_not(condition.raw()); }
template <class... C>
Json and_(C... conditions) { return runner_join("and", Json(conditions).raw()..., static_cast<runner_json *>(nullptr)); }
template <class... C>
Json or_(C... conditions) { return runner_join("or", Json(conditions).raw()..., static_cast<runner_json *>(nullptr)); }

template <class Self>
class Filtered : public Operation {
 public:
  using Operation::Operation;
  /* One more condition: all must hold. */
  Self &where(const char *name, const char *operation, Json value) { return match(field(name, operation, value)); }
  Self &match(Json condition) {
    runner_match(op_, condition.raw());
    return static_cast<Self &>(*this);
  }
};

struct Page {
  Json rows;
  std::optional<std::string> next_cursor; /* none on the last page */
};

/* The result of an operation with a limit. */
struct Counts {
  std::int64_t count;
  bool more; /* there are more */
  static Counts of(runner_op *op, int most) {
    bool more = false;
    std::int64_t count = runner_count_at_most(op, most, &more);
    return {count, more};
  }
};

/* A query over the rows of an entity that the caller may read. Steps change it and
 * give it back. */
class Selection : public Filtered<Selection> {
 public:
  using Filtered::Filtered;
  Selection &select(std::initializer_list<const char *> fields) {
    for (const char *f : fields) runner_select(op_, f);
    return *this;
  }
  Selection &order_by(const char *name, const char *direction = "asc") {
    runner_order_by(op_, name, direction);
    return *this;
  }
  Selection &limit(int most) {
    runner_limit(op_, most);
    return *this;
  }
  /* The rows behind a cursor: the next_cursor of the page before. */
  Selection &after(const std::optional<std::string> &cursor) {
    if (cursor) runner_after(op_, keep(*cursor));
    return *this;
  }
  /* Includes rows of a relation; what is included is a query without an entity:
   * include("lines", query().limit(20)). */
  Selection &include(const char *relation, Selection what);
  Json rows() { return runner_rows(op_); }
  Page page() {
    runner_text next = {nullptr, 0};
    Json rows = runner_page(op_, &next);
    return {rows, text_of(next)};
  }
  /* The first row, or null if there is none. */
  Json first() { return runner_first(op_); }
  /* The first row. If no row matches, it fails with not_found. */
  Json first_or_fail() { return runner_row(op_); }
  std::int64_t count() { return runner_count(op_); }
  /* Counts at most that number of rows, 1 to 1,000,000, and returns whether there are more. */
  Counts count_at_most(int most) { return Counts::of(op_, most); }
};
inline Selection &Selection::include(const char *relation, Selection what) {
  runner_include(op_, relation, what.raw());
  return *this;
}
inline Selection query(const char *entity = nullptr) { return Selection(runner_query(entity)); }

/* Computes over the rows of an entity, in groups of equal fields. */
class Aggregation : public Filtered<Aggregation> {
 public:
  using Filtered::Filtered;
  Aggregation &group_by(std::initializer_list<const char *> fields) { return compute("groupBy", fields); }
  Aggregation &sum(std::initializer_list<const char *> fields) { return compute("sum", fields); }
  Aggregation &avg(std::initializer_list<const char *> fields) { return compute("avg", fields); }
  Aggregation &min(std::initializer_list<const char *> fields) { return compute("min", fields); }
  Aggregation &max(std::initializer_list<const char *> fields) { return compute("max", fields); }
  /* The "day", "week" or "month" of a time, in a time zone such as "Europe/Berlin"; nullptr is UTC. */
  Aggregation &group_by_time(const char *name, const char *period, const char *zone = nullptr) {
    runner_group_by_time(op_, name, period, zone);
    return *this;
  }
  Aggregation &count() {
    runner_count_rows(op_);
    return *this;
  }
  /* The groups, as {"group", "count", "sum", "avg", "min", "max"} with what was asked for. */
  Json rows() { return runner_rows(op_); }

 private:
  Aggregation &compute(const char *function, std::initializer_list<const char *> fields) {
    for (const char *f : fields) runner_compute_these(op_, function, f, static_cast<const char *>(nullptr));
    return *this;
  }
};
inline Aggregation aggregate(const char *entity) { return Aggregation(runner_aggregate(entity)); }

/* One row by its id. */
class Lookup : public Operation {
 public:
  using Operation::Operation;
  Lookup &select(std::initializer_list<const char *> fields) {
    for (const char *f : fields) runner_select(op_, f);
    return *this;
  }
  Lookup &include(const char *relation, Selection what) {
    runner_include(op_, relation, what.raw());
    return *this;
  }
  Json row() { return runner_row(op_); }
};
inline Lookup get(const char *entity, std::string_view id) { return Lookup(runner_get(entity, keep(id))); }

/* A new row of an object, or new rows of a list. */
class Insertion : public Operation {
 public:
  using Operation::Operation;
  Json row() { return runner_row(op_); }
  Json rows() { return runner_rows(op_); }
};
inline Insertion insert(const char *entity, Json values) { return Insertion(runner_insert(entity, values.raw())); }

/* A change or a removal; of all rows only when every() says so. */
class Change : public Filtered<Change> {
 public:
  using Filtered::Filtered;
  Change &every() {
    runner_every(op_);
    return *this;
  }
  /* Runs it, and returns the number of rows. */
  std::int64_t run() { return runner_count(op_); }
  /* Runs it on at most that number of rows, 1 to 1,000, and returns whether other rows match. */
  Counts limit(int most) { return Counts::of(op_, most); }
  /* Runs it, and gives the rows as they are then. */
  Json rows() { return runner_rows(op_); }
};
inline Change update(const char *entity, Json set) { return Change(runner_update(entity, set.raw())); }
inline Change remove(const char *entity) { return Change(runner_remove(entity)); }

/* Any operation of the ABI. */
inline Json call(const char *operation, Json arguments) { return runner_call(operation, arguments.raw()); }

/* The keys that the caller may issue, as objects: see runner.h. */
namespace api_keys {
inline Json create(Json options) { return runner_api_key_create(options.raw()); }
inline Json get(std::string_view id) { return runner_api_key_get(keep(id)); }
inline Json list(Json options = {}) { return runner_api_key_list(options.raw()); }
inline Json rotate(std::string_view id, std::int64_t grace = 0) { return runner_api_key_rotate(keep(id), grace); }
inline Json revoke(std::string_view id) { return runner_api_key_revoke(keep(id)); }
}  // namespace api_keys

/* Sessions of the app's users: see runner.h. */
namespace sessions {
inline Json create(Json options) { return runner_session_create(options.raw()); }
inline Json list(Json options = {}) { return runner_session_list(options.raw()); }
/* How many have ended. */
inline std::int64_t revoke_all(Json options = {}) { return runner_session_revoke_all(options.raw()); }
/* Without an id the session of this request. */
inline Json revoke(std::string_view id = "current") { return runner_session_revoke(keep(id)); }
}  // namespace sessions

/* Requests that are signed, on routes that do not say `verify:`: see runner.h. */
namespace webhooks {
inline Json verify(std::string_view scheme, std::string_view secret) {
  return runner_webhook_verify(keep(scheme).data, keep(secret).data);
}
}  // namespace webhooks

/* Work for after the commit: see runner.h. */
namespace jobs {
inline Json enqueue(std::string_view name, Json params = {}, Json options = {}) {
  return runner_job_enqueue(c_string(name), params.raw(), options.raw());
}
inline bool cancel(std::string_view id) { return runner_job_cancel(keep(id)); }
struct Job {
  std::string id;
  std::int64_t attempt;
  std::string scheduled_for;
};
/* The job that the handler runs for; none for a request. */
inline std::optional<Job> current() {
  runner_job j = runner_current_job();
  if (!j.id.data) return std::nullopt;
  return Job{{j.id.data, j.id.len}, j.attempt, {j.scheduled_for.data, j.scheduled_for.len}};
}
}  // namespace jobs

struct Sum {
  std::string hex, base64;
};
inline Sum sum_of(Json result) { return {result["hex"].text_or(""), result["base64"].text_or("")}; }
/* The algorithm is "SHA-256", "SHA-384" or "SHA-512". */
inline Sum digest(const char *algorithm, std::string_view data) { return sum_of(runner_digest(algorithm, keep(data))); }
inline Sum hmac(const char *algorithm, std::string_view key, std::string_view data) {
  return sum_of(runner_hmac(algorithm, keep(key), keep(data)));
}
/* With a declared secret, which the handler need not see. */
inline Sum hmac_with_secret(const char *algorithm, const char *secret, std::string_view data) {
  return sum_of(runner_hmac_with_secret(algorithm, secret, keep(data)));
}
inline bool timing_safe_equal(std::string_view a, std::string_view b) { return runner_timing_safe_equal(keep(a), keep(b)); }

/* Passwords: see runner.h. */
namespace password {
inline std::string hash(std::string_view plain) {
  runner_text made = runner_password_hash(keep(plain));
  return made.data ? std::string(made.data, made.len) : std::string();
}
struct Check {
  bool valid, rehash;
};
/* Without a hash it takes as long, and is not valid. */
inline Check verify(std::string_view plain, std::optional<std::string> hash) {
  Json result = runner_password_verify(keep(plain), hash ? keep(*hash) : runner_t(nullptr));
  return {result["valid"].boolean_or(false), result["rehash"].boolean_or(false)};
}
}  // namespace password

/* A request to another service, whose origin the schema declares with `outbound`. */
struct FetchRequest {
  std::string url, method = "GET";
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  double timeout = 0; /* seconds; 10 when it is 0 */
  /* What becomes of an answer that redirects: "follow", as when it is empty, "manual",
   * which keeps it, or "error", which fails as unavailable. */
  std::string redirect = {};
  /* Requires a public host that the schema does not list: set it for URLs that clients send. */
  bool public_only = false;
};
/* Its answer, with any status; 0 when it failed. Header names are in lower case. */
struct FetchResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  /* The body as JSON, absent when it is none. */
  Json json() const { return runner_parse(keep(body), nullptr); }
};
inline Json fetch_arguments(const FetchRequest &r) {
  Json args = object({{"url", r.url}, {"method", r.method}}), headers = array();
  for (auto &h : r.headers) headers.push(array({h.first, h.second}));
  if (!r.headers.empty()) args.put("headers", headers);
  if (!r.body.empty()) args.put("body", runner_bytes(keep(r.body)));
  if (r.timeout > 0) args.put("timeout", r.timeout);
  if (!r.redirect.empty()) args.put("redirect", r.redirect);
  if (r.public_only) args.put("publicOnly", true);
  return args;
}
inline FetchResponse fetch_response(Json result) {
  FetchResponse r;
  r.status = static_cast<int>(result["status"].integer_or(0));
  for (Json h : result["headers"]) {
    auto name = h.begin();
    std::string text = (*name).text_or("");
    r.headers.emplace_back(text, (*++name).text_or(""));
  }
  r.body = text_of(runner_as_bytes(result["body"].raw())).value_or("");
  return r;
}
/* A handler that has called out is not run again when its transaction conflicts: write
 * first and call out last. */
inline FetchResponse fetch(const FetchRequest &r) { return fetch_response(runner_fetch(fetch_arguments(r).raw())); }
/* Several, under way together; the answers are in order. */
inline std::vector<FetchResponse> fetch_all(const std::vector<FetchRequest> &requests) {
  std::vector<int> tickets;
  std::vector<FetchResponse> all;
  for (auto &r : requests) tickets.push_back(runner_start("fetch", fetch_arguments(r).raw()));
  for (int ticket : tickets) all.push_back(fetch_response(runner_take(ticket)));
  return all;
}

/* A server-sent event; see runner_event. */
struct Event {
  std::string_view data = {}, event = {}, id = {};
  std::int64_t retry = 0; /* milliseconds */
};

/* An answer in parts, which begins here; see "Answers in parts" in runner.h.
 *
 *     runner::Stream out(200, {{"content-type", "text/csv"}});
 *     for (auto row : rows) {
 *       if (!out.write(row["item"].text_or("") + "\n")) break;
 *     }
 *     return out.end();
 */
class Stream {
 public:
  explicit Stream(int status = 200, std::initializer_list<std::pair<std::string_view, std::string_view>> headers = {}) {
    for (auto &h : headers) runner_add_header(c_string(h.first), c_string(h.second));
    runner_begin(status);
  }
  /* An answer of server-sent events. */
  static Stream events() { return Stream(200, {{"content-type", "text/event-stream"}}); }
  /* Sends a part at once. False: the client takes no more, or something has failed. */
  bool write(std::string_view part) { return runner_write(part.data(), part.size()); }
  bool event(const Event &e) {
    return runner_write_event({c_string(e.event), c_string(e.id), e.retry, {e.data.data(), e.data.size()}});
  }
  /* What the handler returns. */
  Response end() const { return runner_end(); }
};

/* 200. An operation is run, and the host sends its result without handing it on. */
inline Response ok(Json body = {}) { return runner_ok(body.raw()); }
inline Response ok(const Selection &rows) { return runner_ok_rows(rows.raw()); }
inline Response ok(const Lookup &row) { return runner_ok_row(row.raw()); }
inline Response ok(const Insertion &row) { return runner_ok_row(row.raw()); }
/* 200 with any bytes. */
inline Response ok_bytes(std::string_view body, std::string_view content_type) {
  return Response(runner_ok_bytes(keep(body))).with_header("content-type", content_type);
}
/* 201, with the Location of what was created unless it is empty. */
inline Response created(Json body, std::optional<std::string> location = std::nullopt) {
  return runner_created(body.raw(), location ? c_string(*location) : nullptr);
}
/* How a file is sent. What is not set is chosen by the runner: see runner_send_options. */
struct SendOptions {
  int status = 200;
  std::string disposition = {}, name = {}, cache = {};
};
/* Answers with a file, or with the part of it that the request asks for. Its bytes do not come to the handler. */
inline Response send_file(const File &file, const SendOptions &options = {}) {
  auto given = [](const std::string &s) { return s.empty() ? nullptr : c_string(s); };
  return runner_send_file(file.raw(), {options.status, given(options.disposition), given(options.name), given(options.cache)});
}
inline Response no_content() { return runner_no_content(); }
inline Response redirect(std::string_view location, int status = 302) { return runner_redirect_with(status, c_string(location)); }
inline Response error(int status, std::string_view message = "") { return runner_error(status, "%s", keep(message).data); }
inline Response bad_request(std::string_view message = "") { return error(400, message); }
inline Response unauthorized(std::string_view message = "") { return error(401, message); }
inline Response forbidden(std::string_view message = "") { return error(403, message); }
inline Response not_found(std::string_view message = "") { return error(404, message); }
/* 500 handler_failed; the message goes to the log alone. */
inline Response fail(std::string_view message) { return runner_fail("%s", keep(message).data); }

}  // namespace runner

#endif
