/*
 * runner.h: the SDK for handlers written in C (C99 and later). C++ has runner.hpp
 * on top of it.
 *
 *     #include "runner.h"
 *
 *     RUNNER_HANDLER(createOrder) {
 *         runner_json *in = runner_body();
 *         runner_text item = runner_as_text(runner_member(in, "item"));
 *         if (item.len == 0) return runner_bad_request("missing field: item");
 *         runner_json *row = runner_row(runner_insert("Order", runner_object(
 *             "item", runner_string(item),
 *             "qty", runner_int(runner_as_int(runner_member(in, "qty"), 1)), NULL)));
 *         return runner_created(row, NULL);
 *     }
 *
 * Handlers are named as in the schema, lie in handlers/<name>/, and `runner build`
 * makes one module of all files there. The header may be included by several of
 * them: they share what it defines.
 *
 * FAILURES. A failed operation, or a body that is not JSON, fails the request: the
 * operations after it are not run and give nothing, and whatever the handler answers
 * then, the request's answer is that of the failure (of rows, keys, sessions,
 * webhooks and jobs not_found 404, denied 403, conflict 409, unavailable 503; invalid_json 400;
 * anything else 500 with the text in the server's log). So a handler is written straight down, and looks for a
 * failure only where it has something else to do: runner_caught() gives its code
 * and lets the request go on.
 *
 * TEXT. runner_text is bytes with their length; those that come from here have a
 * zero byte behind them, so .data is a C string too (with len the whole truth: a
 * caller can send zero bytes). An absent value has no data: see runner_given().
 *
 * MEMORY. All that is given here lives until the handler returns, and nothing is
 * to be freed. Every request begins with the memory that the module began with:
 * what one leaves behind, in variables or on the heap, no other sees.
 *
 * AUTHORITY. Rows and keys are reached with the caller's authority. All that one
 * request reads and writes is one transaction, which commits when the answer is
 * below 400; when another request got in between, the handler runs again.
 */
#ifndef RUNNER_H
#define RUNNER_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What the host offers -------------------------------------------------- */

#ifdef __wasm__
#define RUNNER_IMPORT(name) __attribute__((import_module("runner"), import_name(name)))
#define RUNNER_EXPORT(name) __attribute__((export_name(name)))
#else /* tests on the machine itself bring a host of their own */
#define RUNNER_IMPORT(name)
#define RUNNER_EXPORT(name) __attribute__((used))
#endif
#define RUNNER_API __attribute__((weak))
#define RUNNER_FORMAT(text, values) __attribute__((format(printf, text, values)))

/* generated: abi */
/* Written from hostabi/abi by go generate: change nothing here. */
RUNNER_IMPORT("request_method") extern int32_t runner_host_request_method(void *buf, uint32_t cap);
RUNNER_IMPORT("request_path") extern int32_t runner_host_request_path(void *buf, uint32_t cap);
RUNNER_IMPORT("request_param") extern int32_t runner_host_request_param(const char *name, uint32_t name_len, void *buf, uint32_t cap);
RUNNER_IMPORT("request_query") extern int32_t runner_host_request_query(const char *name, uint32_t name_len, void *buf, uint32_t cap);
RUNNER_IMPORT("request_header") extern int32_t runner_host_request_header(const char *name, uint32_t name_len, void *buf, uint32_t cap);
RUNNER_IMPORT("request_pairs") extern int32_t runner_host_request_pairs(uint32_t kind, void *buf, uint32_t cap);
RUNNER_IMPORT("request_body") extern int32_t runner_host_request_body(uint32_t offset, void *buf, uint32_t cap);
RUNNER_IMPORT("request_read") extern int32_t runner_host_request_read(void *buf, uint32_t cap);
RUNNER_IMPORT("context") extern int32_t runner_host_context(void *buf, uint32_t cap);
RUNNER_IMPORT("response_header") extern int32_t runner_host_response_header(const char *name, uint32_t name_len, const char *value, uint32_t value_len);
RUNNER_IMPORT("response_send") extern int32_t runner_host_response_send(uint32_t status, const void *body, uint32_t body_len);
RUNNER_IMPORT("response_error") extern int32_t runner_host_response_error(uint32_t status, const char *code, uint32_t code_len, const char *message, uint32_t message_len);
RUNNER_IMPORT("response_send_result") extern int32_t runner_host_response_send_result(uint32_t status, uint32_t part);
RUNNER_IMPORT("response_begin") extern int32_t runner_host_response_begin(uint32_t status);
RUNNER_IMPORT("response_write") extern int32_t runner_host_response_write(const void *body, uint32_t body_len);
RUNNER_IMPORT("call") extern int32_t runner_host_call(const char *op, uint32_t op_len, const void *args, uint32_t args_len);
RUNNER_IMPORT("call_result") extern int32_t runner_host_call_result(uint32_t offset, void *buf, uint32_t cap);
RUNNER_IMPORT("call_start") extern int32_t runner_host_call_start(const char *op, uint32_t op_len, const void *args, uint32_t args_len);
RUNNER_IMPORT("call_wait") extern int32_t runner_host_call_wait(void);
RUNNER_IMPORT("call_take") extern int32_t runner_host_call_take(uint32_t ticket);
RUNNER_IMPORT("request_next") extern int32_t runner_host_request_next(const char *handlers, uint32_t handlers_len);
RUNNER_IMPORT("keep_writes") extern void runner_host_keep_writes(void);
RUNNER_IMPORT("log") extern void runner_host_log(uint32_t level, const char *text, uint32_t text_len);

enum { RUNNER_PARAMS = 0, RUNNER_QUERY = 1, RUNNER_HEADERS = 2, RUNNER_RAW_QUERY = 3 };
enum { RUNNER_PART_ALL = 0, RUNNER_PART_ROWS = 1, RUNNER_PART_ROW = 2 };

/* The name of a failed host call's number. One that is not known here is internal. */
static inline const char *runner_errno_name(int32_t n) {
  switch (n) {
    case -1: return "not_found";
    case -2: return "invalid";
    case -3: return "denied";
    case -4: return "conflict";
    case -5: return "too_large";
    case -6: return "limit";
    case -7: return "unavailable";
    case -8: return "deadline";
  }
  return "internal";
}
/* end: abi */

/* ---- Text and memory -------------------------------------------------------- */

/* Bytes with their length; absent when data is NULL. */
typedef struct runner_text {
  const char *data;
  size_t len;
} runner_text;

/* The text of a C string; absent for NULL. */
static inline runner_text runner_t(const char *s) {
  runner_text t = {s, s ? strlen(s) : 0};
  return t;
}

/* Whether it is there; an empty text is. */
static inline bool runner_given(runner_text t) { return t.data != NULL; }

/* Whether it is there and the same as a C string. */
static inline bool runner_is(runner_text t, const char *s) {
  return t.data && t.len == strlen(s) && memcmp(t.data, s, t.len) == 0;
}

/* Memory for this request, zeroed. The request ends when there is none left. */
void *runner_alloc(size_t size);

/* A text made as printf does. */
const char *runner_format(const char *format, ...) RUNNER_FORMAT(1, 2);

/* ---- JSON -------------------------------------------------------------------- */

typedef enum runner_kind {
  RUNNER_NULL,
  RUNNER_BOOL,
  RUNNER_NUMBER,
  RUNNER_STRING,
  RUNNER_ARRAY,
  RUNNER_OBJECT
} runner_kind;

/* A JSON value. NULL stands for one that is absent, wherever one is taken. */
typedef struct runner_json {
  runner_kind kind;
  bool truth;
  bool placed;               /* it has a place in a list or an object */
  bool meant;                /* a null by runner_null, not of a value that is missing */
  runner_text text;          /* a string; a number as it is written; a null: a number that is none */
  runner_text name;          /* of a member */
  struct runner_json *first; /* of the items or members */
  struct runner_json *last;
  struct runner_json *next;
} runner_json;

/* Null, on purpose: as the value of a condition no other null is accepted. */
runner_json *runner_null(void);
runner_json *runner_bool(bool value);
runner_json *runner_int(int64_t value);
/* A number. One that is none (infinite, not a number) is null, and an operation whose
 * arguments have it fails as invalid. */
runner_json *runner_number(double value);
/* A string, of UTF-8; null when the text is absent, which a condition does not accept. */
runner_json *runner_string(runner_text value);
static inline runner_json *runner_str(const char *value) { return runner_string(runner_t(value)); }

/* An object of names and values, ended by NULL:
 *     runner_object("id", id, "item", item, NULL)
 * A member without a value (a NULL in its place would end the list) is null: use
 * runner_put to leave one out. */
runner_json *runner_object(const char *name, ...) __attribute__((sentinel));
/* Adds a member, unless the value is NULL, and gives the object. */
runner_json *runner_put(runner_json *object, const char *name, runner_json *value);
/* A list without items. */
runner_json *runner_array(void);
/* Adds an item, unless it is NULL, and gives the list. One that has a place already
 * is copied, so a part of one value can be put into another. */
runner_json *runner_push(runner_json *array, runner_json *item);

/* The member of an object, NULL when it has none: of several with one name the last. */
runner_json *runner_member(const runner_json *object, const char *name);
/* How many items or members there are. */
size_t runner_length(const runner_json *list);
/* Runs a block for each item of a list, each member of an object. */
#define RUNNER_EACH(item, list) \
  for (runner_json *item = runner_items(list); item; item = item->next)
static inline runner_json *runner_items(const runner_json *list) { return list ? list->first : NULL; }

/* Values, or what to take instead of another kind. */
runner_text runner_as_text(const runner_json *value); /* absent if it is not a string */
int64_t runner_as_int(const runner_json *value, int64_t otherwise); /* also if it is not a whole number, or too large */
double runner_as_number(const runner_json *value, double otherwise);
bool runner_as_bool(const runner_json *value, bool otherwise);
static inline bool runner_is_null(const runner_json *value) { return !value || value->kind == RUNNER_NULL; }

/* How deep lists and objects may lie in each other. */
#define RUNNER_DEPTH 64

/* Reads JSON (RFC 8259). NULL if it is not JSON: why, if not NULL, gets the place. */
runner_json *runner_parse(runner_text text, const char **why);
/* Writes JSON. */
runner_text runner_print(const runner_json *value);

/* ---- The request ------------------------------------------------------------- */

runner_text runner_method(void);
/* The raw path without the query. */
runner_text runner_path(void);
/* A path parameter, decoded; those of the route are never empty. */
runner_text runner_param(const char *name);
/* The first query value of a name, decoded. */
runner_text runner_query_value(const char *name);
/* The query as it was sent, without its "?". Signatures of URLs are made of it. */
runner_text runner_raw_query(void);
/* A header by its name in lower case; repeated lines are joined with ", ". */
runner_text runner_header(const char *name);
/* The exact body, for signatures. */
runner_text runner_raw_body(void);
/* The JSON body. An empty one and null give an object without members. One that is
 * no JSON fails the request with 400 invalid_json. */
runner_json *runner_body(void);

/* Reads the next bytes of the body, at most cap, and returns how many. On a route with stream:
 * the handler runs before the body has arrived, and body: may be larger than memory: this waits
 * for the next bytes. 0 is the end of the body, or a failure: the client is gone, sends too much or
 * is too slow. It then gets 400, 413 or 408. What was read is gone, so the handler does not run
 * again: if another request has changed what it has read from the store, the client gets
 * 409. runner_raw_body and runner_body must not be called after the first part. */
size_t runner_read_body(void *to, size_t cap);

typedef struct runner_pair {
  runner_text name, value;
} runner_pair;
/* All of them, in order of arrival: of which is RUNNER_PARAMS, RUNNER_QUERY or
 * RUNNER_HEADERS. */
const runner_pair *runner_pairs(int of, size_t *count);
/* All query values of a name, as a list of strings. */
runner_json *runner_query_all(const char *name);

/* ---- Files ---------------------------------------------------------------------
 *
 *     RUNNER_HANDLER(createPost) {
 *         runner_file photo = runner_form_file("photo");
 *         if (!runner_given(photo.id)) return runner_bad_request("missing file: photo");
 *         return runner_created(runner_row(runner_insert("Post", runner_object(
 *             "title", runner_string(runner_form_text("title")),
 *             "photo", runner_file_json(photo), NULL))), NULL);
 *     }
 */

/* A file: the value of a field of type file, or one that the request has uploaded or made.
 * The id of one that is absent is absent. */
typedef struct runner_file {
  runner_text id;
  runner_text name;     /* a text for people, never a path */
  runner_text type;     /* the media type, found from the bytes, without parameters */
  int64_t size;         /* in bytes */
  runner_text sha256;   /* the digest of the bytes, in hexadecimal digits */
  runner_text field;    /* of a file of a form: the name of its field, empty for a body that is one file */
  runner_text declared; /* of a file of a form: the media type that the client has declared, empty without one */
} runner_file;

/* What the client has uploaded, on a route with `upload: on`; elsewhere it fails as denied.
 * The host is asked once. The files are gone after the request unless a row that is
 * committed has them. */

/* The first text of a field; absent without one. */
runner_text runner_form_text(const char *name);
/* All texts of a field, as a list of strings. */
runner_json *runner_form_all(const char *name);
/* The first file of a field. The name of a body that is one file is "". */
runner_file runner_form_file(const char *field);
/* All texts, and all files, in the order of the body. */
const runner_pair *runner_form_fields(size_t *count);
const runner_file *runner_form_files(size_t *count);

/* The file of a row: runner_as_file(runner_member(row, "photo")). */
runner_file runner_as_file(const runner_json *value);
/* A file as the value of a field; null for one that is absent. Only the id counts when a row is written. */
runner_json *runner_file_json(runner_file file);

/* Makes a file. The type is found from the bytes; type names that of a text or of unknown
 * bytes more closely, as "text/markdown", and may be NULL. The file is gone after the request
 * unless a row that is committed has it. */
runner_file runner_file_create(const char *name, const char *type, runner_text contents);
/* Makes a file in parts:
 *
 *     int64_t writer = runner_file_open("orders.csv", "text/csv");
 *     while (next_part(&part)) runner_file_write(writer, part.data, part.len);
 *     runner_file order = runner_file_end(writer);
 *
 * Each part is sent at once: write more than a few bytes. No memory is kept for it. */
int64_t runner_file_open(const char *name, const char *type);
bool runner_file_write(int64_t writer, const void *bytes, size_t len);
runner_file runner_file_end(int64_t writer);

/* All bytes of a file. */
runner_text runner_file_read(runner_file file);
/* Reads bytes from an offset on, at most cap, and returns how many; 0 behind the end, or if it failed. */
size_t runner_file_read_part(runner_file file, int64_t offset, void *to, size_t cap);

/* Makes a link to the file of a row: a path that works without credentials for so many seconds, as
 * long as the row has this file. disposition and name are as in runner_send_options, and may be NULL. */
runner_text runner_file_sign(runner_file file, int64_t seconds, const char *disposition, const char *name);

/* ---- The context --------------------------------------------------------------- */

/* The caller, as the host authenticated it; not in the headers. What it has not is
 * absent. */
typedef struct runner_caller {
  runner_text kind; /* "anonymous", "session", "apiKey", "system" (an operator) */
  runner_text user_id, tenant, key_id, scope, capability;
  runner_json *roles;    /* a list of strings */
  runner_json *metadata; /* an object, or NULL */
  runner_json *claims;   /* an object, or NULL */
} runner_caller;
runner_caller runner_auth(void);
/* The id that stands on the answer and in the log. */
runner_text runner_request_id(void);
/* The template of the matched route: "/v1/orders/:id". */
runner_text runner_route(void);
/* When the request's time is over (RFC 3339). */
runner_text runner_deadline(void);
/* The job that the handler runs for; of a request the id is absent. */
typedef struct runner_job {
  runner_text id; /* the idempotency key of what may not happen twice: send it along */
  int64_t attempt; /* counts the runs from 1 */
  runner_text scheduled_for; /* when it was to run first (RFC 3339) */
} runner_job;
runner_job runner_current_job(void);
/* Commits the writes of this request with any status. */
void runner_keep_writes(void);
/* The value of a secret that the schema declares. */
runner_text runner_secret(const char *name);
/* The value of a variable that the schema declares: a number for an int, seconds for a
 * duration, true or false for a bool, and text for the others. */
runner_json *runner_var(const char *name);

typedef enum runner_level { RUNNER_DEBUG, RUNNER_INFO, RUNNER_WARN, RUNNER_ERROR } runner_level;
/* Writes a line to the server's log, as printf does. */
void runner_log(runner_level level, const char *format, ...) RUNNER_FORMAT(2, 3);

/* Ends the request with 500, and the log says why and where. Nothing after it runs. */
#define runner_panic(why) runner_panic_at((why), __FILE__, __LINE__)
_Noreturn void runner_panic_at(const char *why, const char *file, int line);

/* ---- Answers -------------------------------------------------------------------- */

typedef struct runner_response {
  int status;      /* 0: none */
  runner_text body;
  const char *message; /* of a failure */
  int part;            /* of the last operation's result, when handed_on */
  bool failure, failed, handed_on;
  runner_text code;     /* of a failure, when the handler gave one */
  runner_json *members; /* of a failure, when the handler gave some */
  runner_json *file;    /* the arguments of file.send */
  struct runner_line *headers, *last;
} runner_response;

/* 200 with a body of JSON; NULL is null. */
runner_response runner_ok(const runner_json *body);
/* 200 with any bytes: set a content-type, else they are taken for JSON. */
runner_response runner_ok_bytes(runner_text body);
/* 201, with the Location of what was created unless it is NULL or empty. */
runner_response runner_created(const runner_json *body, const char *location);
runner_response runner_no_content(void);
/* 302. The location is a URI reference: "/x", "orders", "?page=2" or a URL. */
runner_response runner_redirect(const char *location);
/* 301, 302, 303, 307 or 308. */
runner_response runner_redirect_with(int status, const char *location);
/* Failures, with a message made as printf does. */
runner_response runner_bad_request(const char *format, ...) RUNNER_FORMAT(1, 2);
runner_response runner_unauthorized(const char *format, ...) RUNNER_FORMAT(1, 2);
runner_response runner_forbidden(const char *format, ...) RUNNER_FORMAT(1, 2);
runner_response runner_not_found(const char *format, ...) RUNNER_FORMAT(1, 2);
/* Any other failure, 400 to 599. */
runner_response runner_error(int status, const char *format, ...) RUNNER_FORMAT(2, 3);
/* Sets the stable code of a failure, in snake_case. */
runner_response runner_with_code(runner_response r, const char *code);
/* Adds a member (RFC 9457) to a failure:
 *
 *     return runner_with_member(runner_with_code(runner_error(402, "buy more"), "no_credit"), "balance", runner_int(3));
 *
 * The runner writes type, title, status, detail, instance, code and requestId: with such
 * a name the answer is 500 handler_failed. */
runner_response runner_with_member(runner_response r, const char *name, runner_json *value);
/* How a file is sent. What is not set is chosen by the runner. */
typedef struct runner_send_options {
  int status;              /* 0: 200 */
  const char *disposition; /* "inline" shows it in a browser, "attachment" saves it; by default inline
                              for types that a browser shows without running them, such as pictures */
  const char *name;        /* replaces the name of the file */
  const char *cache;       /* the Cache-Control; by default that of the route */
} runner_send_options;
/* Answers with a file, or with the part of it that the request asks for. Its bytes do not
 * come to the handler. Only the answer to a request can be a file.
 *
 *     return runner_send_file(photo, (runner_send_options){.disposition = "attachment"}); */
runner_response runner_send_file(runner_file file, runner_send_options options);
/* 500 handler_failed; the message goes to the log alone. */
runner_response runner_fail(const char *format, ...) RUNNER_FORMAT(1, 2);
/* The answer with one more header line. One that the host does not let pass makes
 * the answer 500, and the log says which. */
runner_response runner_with_header(runner_response r, const char *name, const char *value);

/* ---- Answers in parts --------------------------------------------------------------
 *
 *     RUNNER_HANDLER(report) {
 *         runner_add_header("content-type", "text/csv");
 *         runner_begin(200);
 *         for (int i = 0; i < 3; i++) {
 *             const char *line = runner_format("%d\n", i);
 *             if (!runner_write(line, strlen(line))) break;
 *         }
 *         return runner_end();
 *     }
 *
 * runner_begin commits the transaction of the request and sends the head. If the transaction
 * conflicts, runner_begin does not return, and the handler runs again. After it each
 * operation is a transaction of its own. If something fails then, or the handler returns a
 * failure, the answer is broken off, and the client can see that: it gets no end of the body,
 * and of events one of type error before, with the code. */

/* Adds a header line to the answer that runner_begin begins. */
bool runner_add_header(const char *name, const char *value);
/* Begins the answer. If it returns false, the request has failed. */
bool runner_begin(int status);
/* Begins an answer of server-sent events, with status 200. */
bool runner_begin_events(void);
/* Sends bytes at once, and waits for a slow client. It returns false if the client takes no
 * more, which is not a failure, or if something has failed. The handler has about a second
 * to end then. */
bool runner_write(const void *bytes, size_t len);
/* A server-sent event. What is not set is left out. */
typedef struct runner_event {
  const char *event; /* its type; browsers call an event without one "message" */
  const char *id;    /* what the client sends in the header last-event-id when it connects again */
  int64_t retry;     /* how many milliseconds the client waits before it connects again */
  runner_text data;  /* may have several lines */
} runner_event;
/* Sends an event as runner_write does. A line end in its type or its id is a failure.
 *
 *     runner_write_event((runner_event){.event = "tick", .data = runner_t("1")}); */
bool runner_write_event(runner_event e);
/* What a handler returns whose answer has begun. */
runner_response runner_end(void);

/* ---- Operations on rows ----------------------------------------------------------- */

typedef struct runner_op runner_op;

/* A query of the rows of an entity that the caller may read; steps give it back. */
runner_op *runner_query(const char *entity);
/* The fields of the rows: runner_select(op, "id", "total"). Without it all that the
 * caller may read. */
#define runner_select(op, ...) runner_select_these((op), __VA_ARGS__, (const char *)NULL)
runner_op *runner_select_these(runner_op *op, ...) __attribute__((sentinel));
/* One more condition: all must hold. The operators are = != < <= > >= in startsWith
 * contains. A value that is missing (NULL, an absent text, null in a body) fails as
 * invalid: runner_null() compares with null. */
runner_op *runner_where(runner_op *op, const char *field, const char *operation, runner_json *value);
/* One more condition, made by runner_field, runner_and, runner_or and runner_not. */
runner_op *runner_match(runner_op *op, runner_json *condition);
runner_op *runner_order_by(runner_op *op, const char *field, const char *direction);
/* The maximum number of rows, 1 to 1,000; by default 100. For an update or a removal, see also
 * runner_count_at_most, which returns whether other rows match. */
runner_op *runner_limit(runner_op *op, int most);
/* The rows behind a cursor, that of the page before; absent for the first page. */
runner_op *runner_after(runner_op *op, runner_text cursor);
/* Includes the row of a to-one relation in place of its id, or the rows of a to-many
 * relation, with the caller's authority over them: a row that the caller may not read
 * is null. What is included is a query without an entity, or NULL for all fields:
 *     runner_include(op, "partner", runner_select(runner_query(NULL), "name"))
 * Includes may have includes, on two levels. */
runner_op *runner_include(runner_op *op, const char *relation, runner_op *query);

runner_json *runner_field(const char *name, const char *operation, runner_json *value);
#define runner_and(...) runner_join("and", __VA_ARGS__, (runner_json *)NULL)
#define runner_or(...) runner_join("or", __VA_ARGS__, (runner_json *)NULL)
runner_json *runner_not(runner_json *condition);
/* Makes a comparison by runner_field with =, startsWith or contains one without regard
 * to case, by the case folding of Unicode. */
runner_json *runner_ignore_case(runner_json *field);
runner_json *runner_join(const char *word, ...) __attribute__((sentinel));

/* Computes over the rows of an entity, in groups of equal fields, at most two: without
 * runner_group_by all rows are one group. runner_rows gives the groups, as
 * {"group", "count", "sum", "avg", "min", "max"} with what was asked for. Null is no
 * value. Sums are exact; an average of decimals has six more places. */
runner_op *runner_aggregate(const char *entity);
#define runner_group_by(op, ...) runner_compute_these((op), "groupBy", __VA_ARGS__, (const char *)NULL)
#define runner_sum(op, ...) runner_compute_these((op), "sum", __VA_ARGS__, (const char *)NULL)
#define runner_avg(op, ...) runner_compute_these((op), "avg", __VA_ARGS__, (const char *)NULL)
#define runner_min(op, ...) runner_compute_these((op), "min", __VA_ARGS__, (const char *)NULL)
#define runner_max(op, ...) runner_compute_these((op), "max", __VA_ARGS__, (const char *)NULL)
runner_op *runner_compute_these(runner_op *op, const char *function, ...) __attribute__((sentinel));
/* Groups by the "day", "week" or "month" of a time, in a time zone such as "Europe/Berlin"; NULL is UTC.
 * The group has the first day of the period, such as "2026-10-25". Weeks begin on Monday. A date has
 * no time zone. */
runner_op *runner_group_by_time(runner_op *op, const char *field, const char *period, const char *zone);
runner_op *runner_count_rows(runner_op *op);

/* One row by its id; runner_select names its fields. */
runner_op *runner_get(const char *entity, runner_text id);
/* Makes a row of an object, or rows of a list of at most 1,000. */
runner_op *runner_insert(const char *entity, runner_json *values);
/* Sets fields of rows, or removes rows: those that conditions name, and all only
 * when runner_every says so. */
runner_op *runner_update(const char *entity, runner_json *set);
runner_op *runner_remove(const char *entity);
runner_op *runner_every(runner_op *op);

/* Each of these runs the operation. They give NULL, 0 or nothing when it fails. */

/* The rows, as a list. */
runner_json *runner_rows(runner_op *op);
/* The rows with the cursor of the next page, absent on the last one. */
runner_json *runner_page(runner_op *op, runner_text *next);
/* The row of runner_get, the new one of runner_insert, the first one of a query.
 * If there is no row, it fails with not_found. */
runner_json *runner_row(runner_op *op);
/* The first row of a query, NULL if there is none. */
runner_json *runner_first(runner_op *op);
/* The rows that a query finds, without regard to the limit, or that were changed or removed. */
int64_t runner_count(runner_op *op);
/* The same with a maximum number of rows: 1 to 1,000,000 for a query, 1 to 1,000 for an update or
 * a removal. *more is then whether other rows match. */
int64_t runner_count_at_most(runner_op *op, int most, bool *more);
/* Answers with the result as the host has it, without a trip through the handler. */
runner_response runner_ok_rows(runner_op *op);
runner_response runner_ok_row(runner_op *op);
runner_response runner_ok_page(runner_op *op);

/* ---- Other operations ---------------------------------------------------------------- */

/* Any operation: its arguments and its result are JSON (docs/abi/operations.md). */
runner_json *runner_call(const char *operation, const runner_json *arguments);

/* The keys that the caller reaches: those that it created, as a user or as a key. A key also
 * reaches itself. Where @manage in the schema is true, the caller reaches all keys of the
 * scope in its tenant. Every other key is not_found. A key is an object with id, scope, capability, name,
 * status, owner, ownerKind, metadata, …; what creates and rotates also has the token, which
 * nothing shows again. options: {"scope", "name"?, "expiresIn"?, "metadata"?}. */
runner_json *runner_api_key_create(runner_json *options);
runner_json *runner_api_key_get(runner_text id);
/* Options: {"scope"?, "limit"?, "cursor"?}, or NULL. The result is {"keys", "nextCursor"}:
 * a page of at most limit (1 to 1000) keys, or without a limit all, as one page. */
runner_json *runner_api_key_list(runner_json *options);
/* Each older token ends after so many seconds, or at its own end if that is sooner; with 0
 * all end at once. Otherwise a key has at most 5 live tokens: a rotation beyond that is a
 * conflict. */
runner_json *runner_api_key_rotate(runner_text id, int64_t grace);
runner_json *runner_api_key_revoke(runner_text id);

/* Signs a user in, on a route that says `mints: session`; elsewhere it is denied. The
 * answer sets the cookie of a new session, when it commits; the session that the caller
 * had ends. options: {"userId", "tenant"?, "roles"?, "ttl"? in seconds}. The result is
 * {"id", "expiresAt"}. */
runner_json *runner_session_create(runner_json *options);
/* Live sessions of a user, oldest first. options: {"user"?, "tenant"?, "allTenants"?,
 * "limit"?, "cursor"?}, or NULL for the caller's own. Name another user with runner_object, for
 * which a user that is missing is null, and invalid: runner_put leaves it out, and then the
 * sessions are the caller's. The tenant is the caller's unless it is
 * given. Other users are for callers for whom `@manage` in the schema's `session cookie` is
 * true, within their tenant, and for routes that say `mints: session`; there allTenants selects
 * the user's sessions in every tenant. The result is {"sessions", "nextCursor"}: all sessions,
 * or a page of at most limit. A session is an object with id, userId, tenant, roles,
 * createdAt, lastSeenAt, expiresAt and current, which says that it is the session of this request. */
runner_json *runner_session_list(runner_json *options);
/* Ends a session; "current" is the session of this request, whose cookie the answer clears. An id
 * that is absent or empty is invalid. The result is {"id"}. */
runner_json *runner_session_revoke(runner_text id);
/* Ends all sessions of a user, and returns their number. options: {"user"?, "tenant"?,
 * "allTenants"?, "except"?}, or NULL for all of the caller's: name a user as for
 * runner_session_list; except is the id of one that
 * remains, or "current" for the session of this request. */
int64_t runner_session_revoke_all(runner_json *options);

/* Enqueues a job that the schema declares, in the transaction of the request: it runs if
 * and only if that commits. params is an object, or NULL; wrong ones are invalid. options:
 * {"delay"? in seconds, "at"? in RFC 3339, "key"?}, or NULL; while a job of that name and
 * key waits or runs, it is given instead of a new one. The result is {"id", "created"}. */
runner_json *runner_job_enqueue(const char *name, runner_json *params, runner_json *options);
/* Ends a job of the caller's tenant: it does not run any more, and what a run of it has
 * written is not committed. False if it has ended before; an unknown id is not_found. */
bool runner_job_cancel(runner_text id);

/* Checks, on a route that does not say `verify:`, that this request is signed with a
 * declared secret by a scheme: "standard", "stripe", "github" or "slack". What is not
 * is denied. The result is {"id", "timestamp"}: the signature where the scheme has no
 * id, seconds since 1970 or null where it does not say. It does not remember
 * deliveries: one that comes twice passes twice. */
runner_json *runner_webhook_verify(const char *scheme, const char *secret);

/* A digest of bytes as {"hex", "base64"}; the algorithm is "SHA-256", "SHA-384" or
 * "SHA-512". */
runner_json *runner_digest(const char *algorithm, runner_text data);
/* An HMAC with a declared secret, which the handler need not see, or with a key. */
runner_json *runner_hmac_with_secret(const char *algorithm, const char *secret, runner_text data);
runner_json *runner_hmac(const char *algorithm, runner_text key, runner_text data);
/* Whether they are equal, in a time that depends only on their lengths. */
bool runner_timing_safe_equal(runner_text a, runner_text b);
/* A new hash of a password with Argon2id, as a PHC string: $argon2id$v=19$m=19456,t=2,p=1$….
 * The host hashes a few passwords at the same time, and the handler waits; the time counts
 * as CPU time of the request. */
runner_text runner_password_hash(runner_text password);
/* Compares a password with such a hash, or with one of bcrypt, scrypt or PBKDF2 as Django,
 * passlib and others write them. An absent hash stands for a user who does not exist: it
 * takes as long, and is not valid. The result is {"valid", "rehash"}: with rehash it is valid,
 * and has another algorithm or other parameters than new hashes. Store a new one. */
runner_json *runner_password_verify(runner_text password, runner_text hash);
/* Bytes as operations take them: a string, or {"base64"} when they are not UTF-8. */
runner_json *runner_bytes(runner_text bytes);
/* Bytes as operations give them, in either form; absent when they are none. */
runner_text runner_as_bytes(const runner_json *value);

/* A request to another service, whose origin the schema declares with `outbound`:
 * {"url", "method"?, "headers"? [[name, value], …], "body"?, "timeout"? in seconds,
 * "redirect"?, "publicOnly"?}. With "publicOnly": true the URL must be that of a public host that the schema
 * does not list: set it for URLs that clients send. An answer that redirects is followed, as with "follow", is the result
 * with "manual", and fails as unavailable with "error". The result is {"status",
 * "headers", "body"}, whatever the status: read the body with runner_as_bytes. A handler
 * that has called out is not run again when its transaction conflicts; the caller gets
 * 409. So write first and call out last. */
runner_json *runner_fetch(runner_json *request);
/* Starts an operation that waits, such as "fetch", and goes on; runner_take gives what
 * runner_call would have given. So several are under way together. A ticket of less
 * than 0 is one that failed at once. */
int runner_start(const char *operation, const runner_json *arguments);
runner_json *runner_take(int ticket);

/* The code of the failure, which is forgotten then: "not_found", "invalid", "denied",
 * "conflict", "too_large", "limit", "unavailable", "deadline", "internal" or, of a
 * body, "invalid_json". NULL if nothing failed. message, if not NULL, gets the message. */
const char *runner_caught(runner_text *message);
/* A failure. A text that is unknown has no data. */
typedef struct runner_error_info {
  const char *code; /* NULL if nothing failed */
  runner_text message;
  runner_text operation;
  runner_text entity; /* of an operation on rows */
  runner_text field;  /* "email" for a conflict; the fields of @@unique are separated by commas */
} runner_error_info;
/* Returns the failure with its details, and clears it. */
runner_error_info runner_caught_error(void);
/* Whether something failed and was not caught. */
bool runner_failed(void);

/* ---- Handlers ------------------------------------------------------------------------ */

#ifdef __cplusplus
#define RUNNER_C extern "C"
#else
#define RUNNER_C
#endif

typedef runner_response runner_handler(void);
void runner_serve(const char *name, runner_handler *handler);

/* Begins a handler, a function without parameters that returns an answer. */
#define RUNNER_HANDLER(name)                                                \
  static runner_response runner_handle_##name(void);                       \
  RUNNER_C RUNNER_EXPORT(#name) void runner_export_##name(void);           \
  RUNNER_C void runner_export_##name(void) { runner_serve(#name, runner_handle_##name); } \
  static runner_response runner_handle_##name(void)

/* ======================================================================================
 * What is behind it. It is part of every file that includes the header; the linker
 * keeps one copy of what is used.
 */

typedef struct runner_line {
  const char *name, *value;
  struct runner_line *next;
} runner_line;

struct runner_op {
  const char *name, *entity;
  runner_json *args, *fields, *where, *order;
};

/* What the request at hand has come to. */
struct runner_state {
  char *chunk; /* where memory is taken from */
  size_t room;
  const char *failure; /* a code, NULL without one */
  bool inner;          /* it is of an operation that is not the caller's to know of */
  runner_text why;
  runner_text operation, entity, field; /* of the failure */
  runner_json *context;
  runner_json *form;
  runner_text raw;
  const char *handler;
};
RUNNER_API struct runner_state runner_now;

/* ---- Memory ---- */

/* Small things are cut from chunks of so many bytes. With 0 everything has its own
 * memory, so that tools see who writes beside it. */
#ifndef RUNNER_CHUNK
#define RUNNER_CHUNK 16384
#endif

/* Memory that does not fit into the chunk at hand. */
RUNNER_API void *runner_cut_other(size_t size) {
  if (size > RUNNER_CHUNK / 4) { /* by itself: nothing of a chunk is lost to it */
    void *at = malloc(size ? size : 1);
    if (!at) runner_panic("out of memory");
    return at;
  }
  char *chunk = (char *)malloc(RUNNER_CHUNK);
  if (!chunk) runner_panic("out of memory");
  runner_now.chunk = chunk + size;
  runner_now.room = (RUNNER_CHUNK & ~(size_t)15) - size;
  return chunk;
}

/* Memory that is not zeroed, at a multiple of 8. */
static inline void *runner_cut(size_t size) {
  size_t all = (size + 7) & ~(size_t)7;
  if (size > RUNNER_CHUNK / 4 || all > runner_now.room) return runner_cut_other(size > RUNNER_CHUNK / 4 ? size : all);
  char *at = runner_now.chunk;
  runner_now.chunk += all;
  runner_now.room -= all;
  return at;
}

RUNNER_API void *runner_alloc(size_t size) {
  if (size == 0) size = 1;
  if (runner_now.room & 8) runner_now.chunk += 8, runner_now.room -= 8; /* for any type: a multiple of 16 */
  return memset(runner_cut(size), 0, size); /* now: a page that is not touched costs a request nothing */
}

/* How many zero bytes are behind a text that is parsed: 8 bytes can be read from any place in it. */
#define RUNNER_BEHIND 8

/* Memory for a text of so many bytes, with the zero bytes behind it. */
RUNNER_API char *runner_text_room(size_t len) {
  if (len > SIZE_MAX / 2) runner_panic("out of memory");
  char *own = (char *)runner_cut(len + RUNNER_BEHIND);
  memset(own + len, 0, RUNNER_BEHIND);
  return own;
}

RUNNER_API runner_text runner_copy(const char *data, size_t len) {
  char *own = runner_text_room(len);
  if (len) memcpy(own, data, len);
  runner_text t = {own, len};
  return t;
}

RUNNER_API runner_text runner_vformat(const char *format, va_list values) {
  char small[256]; /* for most */
  va_list again;
  va_copy(again, values);
  int n = vsnprintf(small, sizeof small, format, again);
  va_end(again);
  if (n < (int)sizeof small) return runner_copy(small, n < 0 ? 0 : (size_t)n);
  char *own = (char *)runner_alloc((size_t)n + 1);
  vsnprintf(own, (size_t)n + 1, format, values);
  runner_text t = {own, (size_t)n};
  return t;
}

RUNNER_API const char *runner_format(const char *format, ...) {
  va_list values;
  va_start(values, format);
  runner_text t = runner_vformat(format, values);
  va_end(values);
  return t.data;
}

/* A text that grows. */
typedef struct runner_buffer {
  char *data;
  size_t len, cap;
  bool replaced; /* a value that JSON has no form for is written otherwise */
} runner_buffer;

RUNNER_API void runner_grow(runner_buffer *b, size_t len) {
  size_t cap = b->cap ? b->cap : 256;
  while (cap - b->len < len) {
    if (cap > SIZE_MAX / 4) runner_panic("out of memory");
    cap *= 2;
  }
  char *more = (char *)realloc(b->data, cap);
  if (!more) runner_panic("out of memory");
  b->data = more;
  b->cap = cap;
}

/* The end of what is written, with space for so many bytes. */
static inline char *runner_space(runner_buffer *b, size_t len) {
  if (len > b->cap - b->len) runner_grow(b, len);
  return b->data + b->len;
}

static inline void runner_append_byte(runner_buffer *b, char c) {
  *runner_space(b, 1) = c;
  b->len++;
}

RUNNER_API void runner_append(runner_buffer *b, const char *data, size_t len) {
  char *to = runner_space(b, len);
  if (len) memcpy(to, data, len);
  b->len += len;
}

RUNNER_API runner_text runner_finish(runner_buffer *b) {
  runner_append(b, "", 1);
  runner_text t = {b->data, b->len - 1};
  return t;
}

/* ---- JSON values ---- */

static inline runner_json *runner_new(runner_kind kind) {
  runner_json *v = (runner_json *)runner_cut(sizeof *v);
  memset(v, 0, sizeof *v);
  v->kind = kind;
  return v;
}

RUNNER_API runner_json *runner_make(runner_kind kind) { return runner_new(kind); }

RUNNER_API runner_json *runner_null(void) {
  runner_json *v = runner_make(RUNNER_NULL);
  v->meant = true;
  return v;
}

RUNNER_API runner_json *runner_bool(bool value) {
  runner_json *v = runner_make(RUNNER_BOOL);
  v->truth = value;
  return v;
}

/* Writes the digits of a number so that they end before end, and returns where they begin. */
RUNNER_API char *runner_write_digits(char *end, uint64_t n) {
  while (n > UINT32_MAX) { /* nine digits at once: a division of 64 bits is slow */
    uint32_t nine = (uint32_t)(n % 1000000000);
    n /= 1000000000;
    for (int i = 0; i < 9; i++) {
      uint32_t tenth = (uint32_t)((uint64_t)nine * 0xcccccccd >> 35);
      *--end = (char)('0' + (nine - tenth * 10));
      nine = tenth;
    }
  }
  uint32_t rest = (uint32_t)n;
  do {
    uint32_t tenth = (uint32_t)((uint64_t)rest * 0xcccccccd >> 35); /* rest / 10 */
    *--end = (char)('0' + (rest - tenth * 10));
    rest = tenth;
  } while (rest);
  return end;
}

RUNNER_API runner_json *runner_int(int64_t value) {
  char digits[20], *end = digits + sizeof digits; /* -9223372036854775808 has as many */
  char *at = runner_write_digits(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
  if (value < 0) *--at = '-';
  runner_json *v = runner_new(RUNNER_NUMBER);
  v->text = runner_copy(at, (size_t)(end - at));
  return v;
}

/* Writes a number with the fewest digits that tell it from its neighbours, of which the
 * last is the nearest. Without an effect it returns 0 for a number that is not from 2^-8 up to
 * 1e15. to has space for 24 bytes.
 *
 * The number is mantissa / 2^below. Its digits are taken one by one: it is always
 * (digits + rest / 2^below) / unit. Half of the distance to the next number is
 * unit / 2 in the measure of rest. No step is rounded: rest is less than 2^60. */
RUNNER_API size_t runner_write_fraction(char *to, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  int below = 1075 - (int)(bits >> 52 & 0x7ff), places = 0;
  if (below > 60 || fabs(value) >= 1e15) return 0;
  uint64_t mantissa = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52, whole = (uint64_t)1 << below;
  uint64_t digits = mantissa >> below, rest = mantissa & (whole - 1), unit = 1;
  for (;; places++, unit *= 10) {
    uint64_t up = whole - rest;
    if (2 * (rest < up ? rest : up) < unit) {
      if (up < rest || (up == rest && (digits & 1))) digits++;
      break;
    }
    rest *= 10;
    digits = digits * 10 + (rest >> below);
    rest &= whole - 1;
  }
  char all[24], *end = all + sizeof all, *at = runner_write_digits(end, digits), *begin = to;
  if (value < 0) *to++ = '-';
  int before = (int)(end - at) - places; /* digits before the point */
  if (before <= 0) *to++ = '0';
  for (int i = 0; i < before; i++) *to++ = *at++;
  if (places) *to++ = '.';
  for (; before < 0; before++) *to++ = '0';
  while (at < end) *to++ = *at++;
  return (size_t)(to - begin);
}

RUNNER_API runner_json *runner_number(double value) {
  if (!isfinite(value)) {
    runner_json *none = runner_new(RUNNER_NULL);
    none->text = runner_t(isnan(value) ? "NaN" : value < 0 ? "-inf" : "inf");
    return none;
  }
  if (fabs(value) < 1e15 && value == (double)(int64_t)value) return runner_int((int64_t)value);
  runner_json *v = runner_new(RUNNER_NUMBER);
  char text[24];
  size_t len = runner_write_fraction(text, value);
  if (len) {
    v->text = runner_copy(text, len);
    return v;
  }
  for (int digits = 15; digits <= 17; digits++) { /* the fewest that tell it from its neighbours */
    v->text = runner_t(runner_format("%.*g", digits, value));
    if (strtod(v->text.data, NULL) == value) break;
  }
  return v;
}

RUNNER_API runner_json *runner_string(runner_text value) {
  runner_json *v = runner_new(value.data ? RUNNER_STRING : RUNNER_NULL);
  v->text = value;
  if (!value.data) v->text.len = 0;
  return v;
}

RUNNER_API runner_json *runner_array(void) { return runner_make(RUNNER_ARRAY); }

/* Another value with the same content, and without a place. */
RUNNER_API runner_json *runner_clone(const runner_json *value) {
  runner_json *copy = runner_make(value->kind);
  copy->truth = value->truth;
  copy->meant = value->meant;
  copy->text = value->text;
  copy->name = value->name;
  RUNNER_EACH(item, value) runner_push(copy, item);
  return copy;
}

RUNNER_API runner_json *runner_push(runner_json *array, runner_json *item) {
  if (!array || !item) return array;
  if (item->placed) item = runner_clone(item);
  item->placed = true;
  if (array->last) array->last->next = item;
  else array->first = item;
  array->last = item;
  return array;
}

RUNNER_API runner_json *runner_put_text(runner_json *object, runner_text name, runner_json *value) {
  if (!object || !value) return object;
  runner_push(object, value);
  object->last->name = name;
  return object;
}

RUNNER_API runner_json *runner_put(runner_json *object, const char *name, runner_json *value) {
  return runner_put_text(object, runner_t(name), value);
}

RUNNER_API runner_json *runner_object(const char *name, ...) {
  runner_json *object = runner_make(RUNNER_OBJECT);
  va_list rest;
  va_start(rest, name);
  for (; name; name = va_arg(rest, const char *)) {
    runner_json *value = va_arg(rest, runner_json *);
    runner_put(object, name, value ? value : runner_null());
  }
  va_end(rest);
  return object;
}

RUNNER_API runner_json *runner_member(const runner_json *object, const char *name) {
  runner_json *found = NULL;
  size_t len = strlen(name);
  if (!object || object->kind != RUNNER_OBJECT) return NULL;
  RUNNER_EACH(member, object) {
    if (member->name.len != len || !member->name.data) continue;
    size_t same = 0;
    while (same < len && member->name.data[same] == name[same]) same++;
    if (same == len) found = member;
  }
  return found;
}

RUNNER_API size_t runner_length(const runner_json *list) {
  size_t n = 0;
  RUNNER_EACH(item, list) n++;
  return n;
}

RUNNER_API runner_text runner_as_text(const runner_json *value) {
  runner_text none = {NULL, 0};
  return value && value->kind == RUNNER_STRING ? value->text : none;
}

static inline bool runner_is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* A number of JSON, rounded as strtod does. */
RUNNER_API double runner_real(const char *text) {
  static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const char *at = text + (*text == '-');
  uint64_t n = 0;
  int digits = 0, power = 0, given = 0; /* digits without leading zeros */
  for (; runner_is_digit(*at); at++, digits += n != 0) n = n * 10 + (uint64_t)(*at - '0');
  if (*at == '.')
    for (at++; runner_is_digit(*at); at++, power--, digits += n != 0) n = n * 10 + (uint64_t)(*at - '0');
  if (*at == 'e' || *at == 'E') {
    bool down = *++at == '-';
    for (at += *at == '-' || *at == '+'; runner_is_digit(*at) && given < 1000; at++) given = given * 10 + (*at - '0');
    power += down ? -given : given;
  }
  /* Both are exact as a double, so that only the last step rounds. */
  if (digits > 19 || given > 999 || n > (uint64_t)1 << 53 || power < -22 || power > 22) return strtod(text, NULL);
  double d = power < 0 ? (double)n / tens[-power] : (double)n * tens[power];
  return *text == '-' ? -d : d;
}

RUNNER_API double runner_as_number(const runner_json *value, double otherwise) {
  return value && value->kind == RUNNER_NUMBER ? runner_real(value->text.data) : otherwise;
}

RUNNER_API int64_t runner_as_int(const runner_json *value, int64_t otherwise) {
  if (!value || value->kind != RUNNER_NUMBER) return otherwise;
  const char *s = value->text.data;
  bool negative = *s == '-';
  uint64_t n = 0, most = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
  for (s += negative; runner_is_digit(*s); s++) {
    uint64_t digit = (uint64_t)(*s - '0');
    if (n > INT64_MAX / 100 && n > (most - digit) / 10) return otherwise;
    n = n * 10 + digit;
  }
  if (*s) { /* a fraction or an exponent: 1e3 and 2.0 are whole too */
    double d = runner_real(value->text.data);
    return d >= -9007199254740992.0 && d <= 9007199254740992.0 && d == (double)(int64_t)d ? (int64_t)d : otherwise;
  }
  return negative ? (int64_t)(0 - n) : (int64_t)n;
}

RUNNER_API bool runner_as_bool(const runner_json *value, bool otherwise) {
  return value && value->kind == RUNNER_BOOL ? value->truth : otherwise;
}

/* ---- Reading JSON ---- */

/* A text is parsed in its own memory, which the strings and numbers of the value keep: a
 * string loses its escapes, and then a zero byte takes the place of its last quote. */
typedef struct runner_reader {
  char *at, *end;  /* RUNNER_BEHIND zero bytes are at end */
  const char *why; /* the first error */
  int levels;      /* how many more may lie in the value at hand */
} runner_reader;

RUNNER_API runner_json *runner_read(runner_reader *r);

RUNNER_API runner_json *runner_wrong(runner_reader *r, const char *why) {
  if (!r->why) r->why = why;
  return NULL;
}

/* The next byte that is not white space; 0 at the end, and nowhere else in JSON. */
static inline char runner_peek(runner_reader *r) {
  while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r') r->at++;
  return *r->at;
}

/* Four bytes, of which the first is the lowest. */
static inline uint32_t runner_little(const unsigned char *at) {
  return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Eight bytes, of which the first is the lowest. */
static inline uint64_t runner_word(const char *at) {
  uint64_t word;
  memcpy(&word, at, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

/* The bytes of a word that are not plain text of a string, in their highest bits: quotes,
 * backslashes, control characters and what is not ASCII. Those above the lowest one that
 * is found may be wrong. */
static inline uint64_t runner_special(uint64_t word) {
  const uint64_t ones = 0x0101010101010101, tops = 0x80 * ones;
  uint64_t quotes = word ^ '"' * ones, backslashes = word ^ '\\' * ones;
  return ((quotes - ones) | (backslashes - ones) | (word - 0x20 * ones) | word) & tops;
}

/* How many bytes the UTF-8 of one character has (RFC 3629); 0 when it is none. */
RUNNER_API size_t runner_utf8(const char *text, size_t len) {
  const unsigned char *s = (const unsigned char *)text;
  if (len == 0) return 0;
  if (s[0] < 0x80) return 1;
  size_t n = s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
  if (n == 0 || n > len) return 0;
  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if (s[0] == 0xe0 && s[1] < 0xa0) return 0; /* longer than it must be */
  if (s[0] == 0xed && s[1] > 0x9f) return 0; /* a surrogate */
  if (s[0] == 0xf0 && s[1] < 0x90) return 0;
  if (s[0] == 0xf4 && s[1] > 0x8f) return 0; /* more than there are */
  return n;
}

/* The number of four hexadecimal digits; -1 when they are none. */
RUNNER_API int32_t runner_hex4(const char *at, const char *end) {
  int32_t n = 0;
  if (end - at < 4) return -1;
  for (int i = 0; i < 4; i++) {
    char c = at[i];
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    n = n * 16 + digit;
  }
  return n;
}

/* Reads the rest of an escape behind \u and writes its UTF-8; false if it is not a character. */
RUNNER_API bool runner_read_unicode(runner_reader *r, char **to) {
  int32_t c = runner_hex4(r->at, r->end), low = -1;
  if (c < 0) return false;
  r->at += 4;
  if (c >= 0xd800 && c < 0xdc00 && r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u') low = runner_hex4(r->at + 2, r->end);
  if (low >= 0xdc00 && low < 0xe000) {
    c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    r->at += 6;
  } else if (c >= 0xd800 && c < 0xe000) {
    return runner_wrong(r, "half of a surrogate pair"), false;
  }
  char *p = *to;
  if (c < 0x80) {
    *p++ = (char)c;
  } else if (c < 0x800) {
    *p++ = (char)(0xc0 | c >> 6);
    *p++ = (char)(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    *p++ = (char)(0xe0 | c >> 12);
    *p++ = (char)(0x80 | (c >> 6 & 0x3f));
    *p++ = (char)(0x80 | (c & 0x3f));
  } else {
    *p++ = (char)(0xf0 | c >> 18);
    *p++ = (char)(0x80 | (c >> 12 & 0x3f));
    *p++ = (char)(0x80 | (c >> 6 & 0x3f));
    *p++ = (char)(0x80 | (c & 0x3f));
  }
  *to = p;
  return true;
}

/* Reads the rest of a string, in which r is at the first byte that is not plain. What is
 * written for a character is never longer than the escape of it. */
RUNNER_API bool runner_read_rest(runner_reader *r, char *begin, runner_text *out) {
  char *to = r->at;
  while (*r->at != '"') {
    unsigned char c = (unsigned char)*r->at;
    size_t n;
    if (r->at == r->end) return runner_wrong(r, "a string has no end"), false;
    if (c < 0x20) return runner_wrong(r, "a control character in a string"), false;
    if (c != '\\') {
      if ((n = runner_utf8(r->at, (size_t)(r->end - r->at))) == 0) return runner_wrong(r, "a string that is not UTF-8"), false;
      while (n--) *to++ = *r->at++;
      continue;
    }
    const char *escapes = "\"\\/bfnrt", *means = "\"\\/\b\f\n\r\t";
    const char *known = r->at[1] ? strchr(escapes, r->at[1]) : NULL;
    if (r->end - r->at < 2) return runner_wrong(r, "a string has no end"), false;
    r->at += 2;
    if (known) *to++ = means[known - escapes];
    else if (r->at[-1] != 'u' || !runner_read_unicode(r, &to)) return runner_wrong(r, "an escape that does not exist"), false;
  }
  r->at++;
  *to = 0;
  out->data = begin;
  out->len = (size_t)(to - begin);
  return true;
}

/* Reads a string from its first quote on. */
static inline bool runner_read_string(runner_reader *r, runner_text *out) {
  char *begin = ++r->at, *at = begin;
  uint64_t special;
  while ((special = runner_special(runner_word(at))) == 0) at += 8; /* the zero bytes at the end are special */
  at += __builtin_ctzll(special) / 8;
  r->at = at;
  if (*at != '"') return runner_read_rest(r, begin, out);
  *at = 0;
  r->at++;
  out->data = begin;
  out->len = (size_t)(at - begin);
  return true;
}

static inline bool runner_digits(runner_reader *r) {
  const char *from = r->at;
  while (runner_is_digit(*r->at)) r->at++;
  return r->at > from;
}

static inline runner_json *runner_read_number(runner_reader *r) {
  const char *from = r->at;
  if (*r->at == '-') r->at++;
  bool good = true;
  if (*r->at == '0') r->at++;
  else good = runner_digits(r);
  if (good && *r->at == '.') {
    r->at++;
    good = runner_digits(r);
  }
  if (good && (*r->at == 'e' || *r->at == 'E')) {
    r->at++;
    if (*r->at == '+' || *r->at == '-') r->at++;
    good = runner_digits(r);
  }
  if (!good) return runner_wrong(r, "a number that is none");
  runner_json *v = runner_new(RUNNER_NUMBER);
  v->text.data = from;
  v->text.len = (size_t)(r->at - from);
  return v;
}

/* What follows a value. It may lie right behind a number, in the place of its zero byte, and is
 * read here for the last time. */
static inline char runner_follows(runner_reader *r, const runner_json *v) {
  char c = runner_peek(r);
  if (v->kind == RUNNER_NUMBER) ((char *)v->text.data)[v->text.len] = 0;
  return c;
}

/* Reads what stands between brackets or braces. */
RUNNER_API runner_json *runner_read_list(runner_reader *r, runner_kind kind, char closing) {
  runner_json *list = runner_new(kind), **place = &list->first;
  if (--r->levels < 0) return runner_wrong(r, "lists and objects that lie too deep in each other");
  r->at++;
  if (runner_peek(r) == closing) {
    r->at++;
    r->levels++;
    return list;
  }
  for (;;) {
    runner_text name = {NULL, 0};
    if (kind == RUNNER_OBJECT) {
      if (runner_peek(r) != '"') return runner_wrong(r, "a member needs a name in double quotes");
      if (!runner_read_string(r, &name)) return NULL;
      if (runner_peek(r) != ':') return runner_wrong(r, "a colon is missing");
      r->at++;
    }
    runner_json *value = runner_read(r);
    if (!value) return NULL;
    value->placed = true;
    value->name = name;
    list->last = *place = value;
    place = &value->next;
    char c = runner_follows(r, value);
    if (c != ',' && c != closing) return runner_wrong(r, "a comma or the end of a list or object is missing");
    r->at++;
    if (c == closing) {
      r->levels++;
      return list;
    }
  }
}

RUNNER_API runner_json *runner_read_word(runner_reader *r, const char *word, runner_json *value) {
  size_t n = strlen(word);
  if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0) return runner_wrong(r, "a value that is none");
  r->at += n;
  return value;
}

RUNNER_API runner_json *runner_read(runner_reader *r) {
  runner_json *v;
  switch (runner_peek(r)) {
    case '{': return runner_read_list(r, RUNNER_OBJECT, '}');
    case '[': return runner_read_list(r, RUNNER_ARRAY, ']');
    case '"':
      v = runner_new(RUNNER_STRING);
      return runner_read_string(r, &v->text) ? v : NULL;
    case 't': return runner_read_word(r, "true", runner_bool(true));
    case 'f': return runner_read_word(r, "false", runner_bool(false));
    case 'n': return runner_read_word(r, "null", runner_new(RUNNER_NULL));
    case '-': case '0': case '1': case '2': case '3': case '4':
    case '5': case '6': case '7': case '8': case '9': return runner_read_number(r);
  }
  return runner_wrong(r, r->at == r->end ? "the value is missing" : "a value that is none");
}

/* Reads a text that the SDK made and nothing else has. */
RUNNER_API runner_json *runner_parse_own(int levels, runner_text text, const char **why) {
  char *begin = (char *)text.data;
  runner_reader r = {begin, begin + text.len, NULL, levels};
  runner_json *v = runner_read(&r);
  if (v && (runner_follows(&r, v), r.at != r.end)) v = runner_wrong(&r, "there is something behind the value");
  if (!v && why) *why = runner_format("%s, at byte %zu", r.why, (size_t)(r.at - begin) + 1);
  return v;
}

RUNNER_API runner_json *runner_parse(runner_text text, const char **why) {
  return runner_parse_own(RUNNER_DEPTH, runner_copy(text.data, text.data ? text.len : 0), why);
}

/* ---- Writing JSON ---- */

/* Writes the rest of a string, from the first part on that may not be plain, and the last quote. */
RUNNER_API void runner_write_rest(runner_buffer *b, const char *at, const char *end) {
  while (at < end) {
    unsigned char c = (unsigned char)*at;
    if (c < 0x20 || c == '"' || c == '\\') {
      char escape[8];
      int n = c < 0x20 ? snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c) : snprintf(escape, sizeof escape, "\\%c", c);
      runner_append(b, escape, (size_t)n);
      at++;
      continue;
    }
    size_t n = runner_utf8(at, (size_t)(end - at));
    if (n) {
      char *to = runner_space(b, n);
      for (size_t i = 0; i < n; i++) to[i] = at[i];
      b->len += n;
    } else {
      runner_append(b, "\xef\xbf\xbd", 3), b->replaced = true; /* JSON must be UTF-8 */
    }
    at += n ? n : 1;
  }
  runner_append_byte(b, '"');
}

/* Up to 7 bytes as a word; those above are 0. Nothing behind them is read. */
static inline uint64_t runner_word_of(const char *at, size_t len) {
  const unsigned char *s = (const unsigned char *)at;
  if (len == 0) return 0;
  if (len < 4) return s[0] | (uint64_t)s[len / 2] << len / 2 * 8 | (uint64_t)s[len - 1] << (len - 1) * 8;
  return runner_little(s) | (uint64_t)runner_little(s + len - 4) << (len - 4) * 8;
}

static inline void runner_put_word(char *to, uint64_t word) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  memcpy(to, &word, sizeof word);
}

static inline void runner_write_string(runner_buffer *b, runner_text t) {
  char *to = runner_space(b, t.len + 10); /* the last word may have 8 bytes that are not used */
  const char *at = t.data, *end = at + t.len;
  *to++ = '"';
  for (; end - at >= 8; at += 8, to += 8) {
    uint64_t word = runner_word(at);
    if (runner_special(word)) break;
    runner_put_word(to, word);
  }
  size_t left = (size_t)(end - at);
  uint64_t word = left < 8 ? runner_word_of(at, left) : 0;
  bool plain = left < 8 && !(runner_special(word) & (((uint64_t)1 << left * 8) - 1));
  if (plain) {
    runner_put_word(to, word);
    to += left;
    *to++ = '"';
  }
  b->len = (size_t)(to - b->data);
  if (!plain) runner_write_rest(b, at, end);
}

/* Writes what is short. */
static inline void runner_write_plain(runner_buffer *b, runner_text t) {
  char *to = runner_space(b, t.len + 8);
  const char *at = t.data, *end = at + t.len;
  for (; end - at >= 8; at += 8, to += 8) runner_put_word(to, runner_word(at));
  runner_put_word(to, runner_word_of(at, (size_t)(end - at)));
  b->len += t.len;
}

RUNNER_API void runner_write_json(runner_buffer *b, const runner_json *v, int depth) {
  if (depth > 2 * RUNNER_DEPTH) runner_panic("a JSON value that holds itself, or is too deep");
  switch (v ? v->kind : RUNNER_NULL) {
    case RUNNER_NULL:
      if (v && v->text.data) b->replaced = true;
      runner_append(b, "null", 4);
      return;
    case RUNNER_BOOL: runner_append(b, v->truth ? "true" : "false", v->truth ? 4 : 5); return;
    case RUNNER_NUMBER: runner_write_plain(b, v->text); return;
    case RUNNER_STRING: runner_write_string(b, v->text); return;
    case RUNNER_ARRAY:
    case RUNNER_OBJECT: break;
  }
  bool object = v->kind == RUNNER_OBJECT;
  runner_append_byte(b, object ? '{' : '[');
  RUNNER_EACH(item, v) {
    if (item != v->first) runner_append_byte(b, ',');
    if (object) {
      runner_write_string(b, item->name);
      runner_append_byte(b, ':');
    }
    runner_write_json(b, item, depth + 1);
  }
  runner_append_byte(b, object ? '}' : ']');
}

RUNNER_API runner_text runner_print(const runner_json *value) {
  runner_buffer b = {NULL, 0, 0, false};
  runner_write_json(&b, value, 0);
  return runner_finish(&b);
}

RUNNER_API bool runner_is_utf8(runner_text t) {
  size_t i = 0;
  for (size_t n; i < t.len && (n = runner_utf8(t.data + i, t.len - i)) > 0;) i += n;
  return i == t.len;
}

/* What the first part of a value is that JSON has no form for, and the path to it; NULL
 * without one. */
RUNNER_API const char *runner_odd(const runner_json *v, runner_buffer *path) {
  if (!v) return NULL;
  if (v->kind == RUNNER_NULL && v->text.data) return v->text.data;
  if (v->kind == RUNNER_STRING && !runner_is_utf8(v->text)) return "text that is not UTF-8";
  size_t i = 0, here = path->len;
  RUNNER_EACH(part, v) {
    if (v->kind == RUNNER_OBJECT && !runner_is_utf8(part->name)) return "an object with a name that is not UTF-8";
    if (v->kind == RUNNER_OBJECT && here) runner_append(path, ".", 1);
    if (v->kind == RUNNER_OBJECT) runner_append(path, part->name.data, part->name.len);
    const char *index = v->kind == RUNNER_ARRAY ? runner_format("[%zu]", i++) : "";
    runner_append(path, index, strlen(index));
    const char *odd = runner_odd(part, path);
    if (odd) return odd;
    path->len = here;
  }
  return NULL;
}

/* ---- The request ---- */

/* Reads a value that the host gives whole. */
typedef int32_t runner_whole(const char *name, uint32_t len, void *buf, uint32_t cap);

RUNNER_API runner_text runner_take_whole(runner_whole *read, const char *name) {
  char small[256];
  uint32_t len = name ? (uint32_t)strlen(name) : 0;
  int32_t n = read(name, len, small, sizeof small);
  if (n < 0) return runner_t(NULL);
  if ((size_t)n <= sizeof small) return runner_copy(small, (size_t)n);
  char *own = runner_text_room((size_t)n);
  if (read(name, len, own, (uint32_t)n) != n) return runner_t(NULL);
  runner_text t = {own, (size_t)n};
  return t;
}

/* Reads a value that the host gives from an offset on. *n becomes its length, or the host's errno;
   then the text is empty. */
RUNNER_API runner_text runner_take_pieces(int32_t (*read)(uint32_t offset, void *buf, uint32_t cap), int32_t *n) {
  *n = read(0, NULL, 0);
  if (*n <= 0) return runner_copy("", 0);
  char *own = runner_text_room((size_t)*n);
  *n = read(0, own, (uint32_t)*n);
  if (*n < 0) return runner_copy("", 0);
  runner_text t = {own, (size_t)*n};
  return t;
}

RUNNER_API int32_t runner_read_method(const char *name, uint32_t len, void *buf, uint32_t cap) {
  (void)name, (void)len;
  return runner_host_request_method(buf, cap);
}
RUNNER_API int32_t runner_read_path(const char *name, uint32_t len, void *buf, uint32_t cap) {
  (void)name, (void)len;
  return runner_host_request_path(buf, cap);
}
RUNNER_API int32_t runner_read_context(const char *name, uint32_t len, void *buf, uint32_t cap) {
  (void)name, (void)len;
  return runner_host_context(buf, cap);
}

RUNNER_API runner_text runner_method(void) { return runner_take_whole(runner_read_method, NULL); }
RUNNER_API runner_text runner_path(void) { return runner_take_whole(runner_read_path, NULL); }
RUNNER_API runner_text runner_param(const char *name) { return runner_take_whole(runner_host_request_param, name); }
RUNNER_API runner_text runner_query_value(const char *name) { return runner_take_whole(runner_host_request_query, name); }
RUNNER_API runner_text runner_header(const char *name) { return runner_take_whole(runner_host_request_header, name); }

RUNNER_API runner_text runner_raw_body(void) {
  int32_t n;
  if (!runner_now.raw.data) runner_now.raw = runner_take_pieces(runner_host_request_body, &n);
  return runner_now.raw;
}

/* The failure of the request; the first one stays. */
RUNNER_API void runner_note(const char *code, runner_text why) {
  if (runner_now.failure) return;
  runner_now.failure = code;
  runner_now.why = why;
  runner_now.operation = runner_now.entity = runner_now.field = runner_t(NULL);
  runner_now.inner = false;
}

RUNNER_API size_t runner_read_body(void *to, size_t cap) {
  if (runner_now.failure || cap == 0) return 0;
  int32_t n = runner_host_request_read(to, (uint32_t)(cap < INT32_MAX ? cap : INT32_MAX));
  if (n >= 0) return (size_t)n;
  runner_note(runner_errno_name(n), runner_t("read the body of the request"));
  runner_now.inner = true;
  return 0;
}

RUNNER_API runner_json *runner_body(void) {
  int32_t n;
  runner_text own = runner_take_pieces(runner_host_request_body, &n); /* the exact body stays with the host */
  const char *why = NULL;
  if (strspn(own.data, " \t\r\n") == own.len) return runner_make(RUNNER_OBJECT);
  runner_json *v = runner_parse_own(RUNNER_DEPTH, own, &why);
  if (!v) runner_note("invalid_json", runner_t(runner_format("read the JSON body: %s", why)));
  else if (v->kind == RUNNER_NULL) v->kind = RUNNER_OBJECT;
  return v;
}

/* Per pair the host writes two lengths and then both texts. */
RUNNER_API const runner_pair *runner_pairs(int of, size_t *count) {
  *count = 0;
  int32_t n = runner_host_request_pairs((uint32_t)of, NULL, 0);
  if (n <= 0) return NULL;
  unsigned char *all = (unsigned char *)runner_alloc((size_t)n);
  if (runner_host_request_pairs((uint32_t)of, all, (uint32_t)n) != n) return NULL;
  size_t pairs = 0;
  for (int32_t at = 0; n - at >= 8; pairs++) at += 8 + (int32_t)(runner_little(all + at) + runner_little(all + at + 4));
  runner_pair *list = (runner_pair *)runner_alloc((pairs + 1) * sizeof *list);
  for (size_t i = 0; i < pairs; i++) {
    uint32_t name = runner_little(all), value = runner_little(all + 4);
    list[i].name = runner_copy((char *)all + 8, name);
    list[i].value = runner_copy((char *)all + 8 + name, value);
    all += 8 + name + value;
  }
  *count = pairs;
  return list;
}

RUNNER_API runner_text runner_raw_query(void) {
  size_t count;
  const runner_pair *pairs = runner_pairs(RUNNER_RAW_QUERY, &count);
  return count > 0 ? pairs[0].value : runner_copy("", 0);
}

RUNNER_API runner_json *runner_query_all(const char *name) {
  size_t count;
  const runner_pair *pairs = runner_pairs(RUNNER_QUERY, &count);
  runner_json *list = runner_array();
  for (size_t i = 0; i < count; i++)
    if (runner_is(pairs[i].name, name)) runner_push(list, runner_string(pairs[i].value));
  return list;
}

/* ---- The context ---- */

RUNNER_API runner_json *runner_facts(void) {
  if (!runner_now.context) {
    runner_now.context = runner_parse(runner_take_whole(runner_read_context, NULL), NULL);
    if (!runner_now.context) runner_panic("the host's context is not JSON");
  }
  return runner_now.context;
}

RUNNER_API runner_text runner_request_id(void) { return runner_as_text(runner_member(runner_facts(), "requestId")); }
RUNNER_API runner_text runner_route(void) { return runner_as_text(runner_member(runner_facts(), "route")); }
RUNNER_API runner_text runner_deadline(void) { return runner_as_text(runner_member(runner_facts(), "deadline")); }

RUNNER_API runner_job runner_current_job(void) {
  runner_json *job = runner_member(runner_facts(), "job");
  runner_job j;
  j.id = runner_as_text(runner_member(job, "id"));
  j.attempt = runner_as_int(runner_member(job, "attempt"), 0);
  j.scheduled_for = runner_as_text(runner_member(job, "scheduledFor"));
  return j;
}

RUNNER_API runner_caller runner_auth(void) {
  runner_json *auth = runner_member(runner_facts(), "auth");
  runner_caller c;
  c.kind = runner_as_text(runner_member(auth, "kind"));
  c.user_id = runner_as_text(runner_member(auth, "userId"));
  c.tenant = runner_as_text(runner_member(auth, "tenant"));
  c.key_id = runner_as_text(runner_member(auth, "keyId"));
  c.scope = runner_as_text(runner_member(auth, "scope"));
  c.capability = runner_as_text(runner_member(auth, "capability"));
  c.roles = runner_member(auth, "roles");
  if (!c.roles) c.roles = runner_array();
  c.metadata = runner_member(auth, "metadata");
  c.claims = runner_member(auth, "claims");
  return c;
}

RUNNER_API void runner_keep_writes(void) { runner_host_keep_writes(); }

RUNNER_API void runner_log(runner_level level, const char *format, ...) {
  va_list values;
  va_start(values, format);
  runner_text t = runner_vformat(format, values);
  va_end(values);
  runner_host_log((uint32_t)level, t.data, (uint32_t)t.len);
}

/* It allocates nothing: it is called when there is nothing left. */
RUNNER_API _Noreturn void runner_panic_at(const char *why, const char *file, int line) {
  char text[512];
  const char *base = strrchr(file, '/');
  snprintf(text, sizeof text, "%s%s%s at %s:%d", runner_now.handler ? runner_now.handler : "", runner_now.handler ? ": " : "", why,
           base ? base + 1 : file, line);
  runner_host_log(RUNNER_ERROR, text, (uint32_t)strlen(text));
  __builtin_trap();
}

/* ---- Operations ---- */

RUNNER_API const char *runner_caught(runner_text *message) {
  const char *code = runner_now.failure;
  if (message) *message = runner_now.why;
  runner_now.failure = NULL;
  runner_now.why = runner_now.operation = runner_now.entity = runner_now.field = runner_t(NULL);
  return code;
}

RUNNER_API runner_error_info runner_caught_error(void) {
  runner_error_info e = {runner_now.failure, runner_now.why, runner_now.operation, runner_now.entity, runner_now.field};
  runner_caught(NULL);
  return e;
}

RUNNER_API bool runner_failed(void) { return runner_now.failure != NULL; }

/* Whether the caller may know why an operation failed. */
RUNNER_API bool runner_callers(const char *operation) {
  static const char *const rows[] = {"query", "get", "count", "aggregate", "insert", "update", "delete", "webhooks.verify"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (strcmp(rows[i], operation) == 0) return true;
  }
  return strncmp(operation, "apiKeys.", 8) == 0 || strncmp(operation, "sessions.", 9) == 0 ||
      strncmp(operation, "jobs.", 5) == 0;
}

/* Looks at what a call gave; a failure becomes the request's. */
RUNNER_API bool runner_done(const char *operation, int32_t n) {
  if (n >= 0) return true;
  if (runner_now.failure) return false;
  int32_t length;
  runner_json *failure = runner_parse(runner_take_pieces(runner_host_call_result, &length), NULL);
  runner_note(runner_errno_name(n), runner_as_text(runner_member(failure, "message")));
  if (*operation) runner_now.operation = runner_copy(operation, strlen(operation));
  runner_now.entity = runner_as_text(runner_member(failure, "entity"));
  runner_now.field = runner_as_text(runner_member(failure, "field"));
  runner_now.inner = !runner_callers(operation);
  return false;
}

/* Writes the arguments of an operation. It fails for a value that JSON cannot represent. */
RUNNER_API bool runner_write_arguments(const char *operation, const runner_json *arguments, runner_text *text) {
  runner_buffer b = {NULL, 0, 0, false}, path = {NULL, 0, 0, false};
  if (runner_now.failure) return false;
  runner_write_json(&b, arguments ? arguments : runner_make(RUNNER_OBJECT), 0);
  *text = runner_finish(&b);
  if (!b.replaced) return true;
  const char *odd = runner_odd(arguments, &path);
  runner_note("invalid", runner_t(runner_format("%s: %s is %s: check it first, or use runner_null() on purpose", operation,
      runner_finish(&path).data, odd)));
  return false;
}

/* Runs an operation and leaves its result with the host. */
RUNNER_API bool runner_run(const char *operation, const runner_json *arguments) {
  runner_text args;
  if (!runner_write_arguments(operation, arguments, &args)) return false;
  return runner_done(operation, runner_host_call(operation, (uint32_t)strlen(operation), args.data, (uint32_t)args.len));
}

/* Reads the result that the host has. Its rows may hold JSON that is as deep as may be. */
RUNNER_API runner_json *runner_result(void) {
  int32_t n;
  runner_text text = runner_take_pieces(runner_host_call_result, &n);
  if (!runner_done("", n)) return NULL;
  runner_json *result = runner_parse_own(2 * RUNNER_DEPTH, text, NULL);
  if (!result) runner_note("internal", runner_t("the host's result is not JSON"));
  return result;
}

RUNNER_API runner_json *runner_call(const char *operation, const runner_json *arguments) {
  return runner_run(operation, arguments) ? runner_result() : NULL;
}

RUNNER_API int runner_start(const char *operation, const runner_json *arguments) {
  runner_text args;
  if (!runner_write_arguments(operation, arguments, &args)) return -1;
  int32_t n = runner_host_call_start(operation, (uint32_t)strlen(operation), args.data, (uint32_t)args.len);
  return runner_done(operation, n) ? n : -1;
}

RUNNER_API runner_json *runner_take(int ticket) {
  if (runner_now.failure || ticket < 0) return NULL;
  return runner_done("", runner_host_call_take((uint32_t)ticket)) ? runner_result() : NULL;
}

RUNNER_API runner_json *runner_fetch(runner_json *request) { return runner_call("fetch", request); }

RUNNER_API runner_op *runner_operation(const char *name, const char *entity, const char *member) {
  runner_op *op = (runner_op *)runner_alloc(sizeof *op);
  op->name = name;
  op->entity = entity;
  op->args = runner_put(runner_make(RUNNER_OBJECT), member, entity ? runner_str(entity) : NULL);
  return op;
}

RUNNER_API runner_op *runner_query(const char *entity) { return runner_operation("query", entity, "from"); }

RUNNER_API runner_op *runner_include(runner_op *op, const char *relation, runner_op *query) {
  runner_json *all = runner_member(op->args, "include");
  if (!all) {
    all = runner_make(RUNNER_OBJECT);
    runner_put(op->args, "include", all);
  }
  runner_put(all, relation, query ? query->args : runner_make(RUNNER_OBJECT));
  return op;
}

RUNNER_API runner_op *runner_aggregate(const char *entity) { return runner_operation("aggregate", entity, "from"); }

RUNNER_API runner_op *runner_compute_these(runner_op *op, const char *function, ...) {
  runner_json *list = runner_member(op->args, function);
  if (!list) {
    list = runner_array();
    runner_put(op->args, function, list);
  }
  va_list fields;
  va_start(fields, function);
  for (const char *field; (field = va_arg(fields, const char *));) runner_push(list, runner_str(field));
  va_end(fields);
  return op;
}

RUNNER_API runner_op *runner_group_by_time(runner_op *op, const char *field, const char *period, const char *zone) {
  runner_json *by = runner_push(runner_push(runner_array(), runner_str(field)), runner_str(period));
  if (zone) runner_push(by, runner_str(zone));
  runner_json *all = runner_member(op->args, "groupBy");
  if (!all) runner_put(op->args, "groupBy", all = runner_array());
  runner_push(all, by);
  return op;
}

RUNNER_API runner_op *runner_count_rows(runner_op *op) {
  runner_put(op->args, "count", runner_bool(true));
  return op;
}

RUNNER_API runner_op *runner_get(const char *entity, runner_text id) {
  runner_op *op = runner_operation("get", entity, "from");
  runner_put(op->args, "id", runner_string(id));
  return op;
}

RUNNER_API runner_op *runner_insert(const char *entity, runner_json *values) {
  runner_op *op = runner_operation("insert", entity, "into");
  runner_put(op->args, "values", values);
  return op;
}

RUNNER_API runner_op *runner_update(const char *entity, runner_json *set) {
  runner_op *op = runner_operation("update", entity, "in");
  runner_put(op->args, "set", set);
  return op;
}

RUNNER_API runner_op *runner_remove(const char *entity) { return runner_operation("delete", entity, "from"); }

/* A list among the arguments, made when it is first asked for. */
RUNNER_API runner_json *runner_list(runner_op *op, runner_json **list, const char *name) {
  if (!*list) {
    *list = runner_array();
    runner_put(op->args, name, *list);
  }
  return *list;
}

RUNNER_API runner_op *runner_select_these(runner_op *op, ...) {
  va_list fields;
  va_start(fields, op);
  for (const char *field; (field = va_arg(fields, const char *));) runner_push(runner_list(op, &op->fields, "select"), runner_str(field));
  va_end(fields);
  return op;
}

RUNNER_API runner_op *runner_every(runner_op *op) {
  runner_list(op, &op->where, "where");
  return op;
}

/* Adds a condition; those of a list are taken apart. */
RUNNER_API void runner_conjoin(runner_json *list, runner_json *condition) {
  bool all = condition && condition->kind == RUNNER_ARRAY && (!condition->first || condition->first->kind == RUNNER_ARRAY);
  if (!all) {
    runner_push(list, condition);
    return;
  }
  RUNNER_EACH(inner, condition) runner_push(list, inner);
}

RUNNER_API runner_op *runner_match(runner_op *op, runner_json *condition) {
  runner_conjoin(runner_list(op, &op->where, "where"), condition);
  return op;
}

RUNNER_API runner_op *runner_where(runner_op *op, const char *field, const char *operation, runner_json *value) {
  return runner_match(op, runner_field(field, operation, value));
}

RUNNER_API runner_json *runner_field(const char *name, const char *operation, runner_json *value) {
  runner_json *c = runner_push(runner_push(runner_array(), runner_str(name)), runner_str(operation));
  runner_buffer path = {NULL, 0, 0, false};
  bool missing = !value || (value->kind == RUNNER_NULL && !value->meant && !value->text.data);
  const char *odd = missing ? "absent" : runner_odd(value, &path);
  if (!odd) return runner_push(c, value);
  const char *at = path.len ? runner_finish(&path).data : "";
  runner_note("invalid", runner_t(runner_format("%s: the value of %s %s %s%s%s: check it before the query, or compare with runner_null()",
      name, operation, *at ? "has" : "is", odd, *at ? " at " : "", at)));
  return c; /* without a value, so that the host refuses it even if the failure is caught before */
}

RUNNER_API runner_json *runner_ignore_case(runner_json *field) { return runner_push(field, runner_str("ignoreCase")); }

RUNNER_API runner_json *runner_join(const char *word, ...) {
  runner_json *joined = runner_array();
  bool all = strcmp(word, "and") == 0;
  if (!all) runner_push(joined, runner_str(word));
  va_list conditions;
  va_start(conditions, word);
  for (runner_json *c; (c = va_arg(conditions, runner_json *));) {
    if (all) runner_conjoin(joined, c);
    else runner_push(joined, c);
  }
  va_end(conditions);
  return joined;
}

RUNNER_API runner_json *runner_not(runner_json *condition) {
  return runner_push(runner_push(runner_array(), runner_str("not")), condition);
}

RUNNER_API runner_op *runner_order_by(runner_op *op, const char *field, const char *direction) {
  runner_json *by = runner_push(runner_array(), runner_str(field));
  runner_push(by, runner_str(direction ? direction : "asc"));
  runner_push(runner_list(op, &op->order, "orderBy"), by);
  return op;
}

RUNNER_API runner_op *runner_limit(runner_op *op, int most) {
  runner_put(op->args, "limit", runner_int(most));
  return op;
}

RUNNER_API runner_op *runner_after(runner_op *op, runner_text cursor) {
  if (cursor.data) runner_put(op->args, "cursor", runner_string(cursor));
  return op;
}

RUNNER_API runner_json *runner_page(runner_op *op, runner_text *next) {
  runner_json *result = runner_call(op->name, op->args);
  if (next) *next = runner_as_text(runner_member(result, "nextCursor"));
  return runner_member(result, "rows");
}

RUNNER_API runner_json *runner_rows(runner_op *op) { return runner_page(op, NULL); }

/* The first row of a query is asked for alone. */
RUNNER_API void runner_ask_for_one(runner_op *op) {
  if (strcmp(op->name, "query") == 0 && !runner_member(op->args, "limit")) runner_limit(op, 1);
}

RUNNER_API runner_json *runner_first(runner_op *op) {
  runner_ask_for_one(op);
  return runner_items(runner_rows(op));
}

RUNNER_API runner_json *runner_row(runner_op *op) {
  runner_ask_for_one(op);
  runner_json *result = runner_call(op->name, op->args);
  runner_json *row = runner_member(result, "row");
  if (!row) row = runner_items(runner_member(result, "rows"));
  if (result && !row) runner_note("not_found", runner_t(runner_format("no row of %s matches the conditions", op->entity)));
  return row;
}

/* Runs an operation that counts rows. most is their maximum number, or NULL. */
RUNNER_API runner_json *runner_counted(runner_op *op, const int *most) {
  if (strcmp(op->name, "query") == 0) { /* the order, the fields and the limit mean nothing to it */
    runner_json *args = runner_put(runner_make(RUNNER_OBJECT), "from", runner_str(op->entity));
    runner_put(args, "where", op->where);
    if (most) runner_put(args, "atMost", runner_int(*most));
    return runner_call("count", args);
  }
  if (most) runner_limit(op, *most);
  return runner_call(op->name, op->args);
}

RUNNER_API int64_t runner_count(runner_op *op) { return runner_as_int(runner_member(runner_counted(op, NULL), "count"), 0); }

RUNNER_API int64_t runner_count_at_most(runner_op *op, int most, bool *more) {
  runner_json *result = runner_counted(op, &most);
  if (more) *more = runner_as_bool(runner_member(result, "more"), false);
  return runner_as_int(runner_member(result, "count"), 0);
}

RUNNER_API runner_text runner_secret(const char *name) {
  return runner_as_text(runner_member(runner_call("secret", runner_object("name", runner_str(name), NULL)), "value"));
}

RUNNER_API runner_json *runner_var(const char *name) {
  return runner_member(runner_call("var", runner_object("name", runner_str(name), NULL)), "value");
}

RUNNER_API runner_json *runner_api_key_create(runner_json *options) { return runner_call("apiKeys.create", options); }
RUNNER_API runner_json *runner_api_key_list(runner_json *options) {
  if (runner_member(options, "limit")) return runner_call("apiKeys.list", options);
  runner_json *all = NULL, *cursor = runner_member(options, "cursor");
  for (;;) {
    runner_json *args = runner_object("limit", runner_int(1000), NULL);
    RUNNER_EACH(option, options) if (!runner_is(option->name, "cursor")) runner_put_text(args, option->name, option);
    runner_put(args, "cursor", cursor);
    runner_json *page = runner_call("apiKeys.list", args);
    if (!page) return NULL;
    cursor = runner_member(page, "nextCursor");
    if (!all) {
      all = page;
    } else { /* the keys of this page are appended to those of the first */
      runner_json *keys = runner_member(all, "keys"), *more = runner_member(page, "keys");
      if (more && more->first) {
        if (keys->last) keys->last->next = more->first;
        else keys->first = more->first;
        keys->last = more->last;
      }
    }
    if (!cursor || cursor->kind != RUNNER_STRING) break;
  }
  runner_json *next = runner_member(all, "nextCursor");
  if (next) next->kind = RUNNER_NULL;
  return all;
}
RUNNER_API runner_json *runner_api_key_get(runner_text id) {
  return runner_call("apiKeys.get", runner_object("id", runner_string(id), NULL));
}
RUNNER_API runner_json *runner_api_key_rotate(runner_text id, int64_t grace) {
  return runner_call("apiKeys.rotate", runner_object("id", runner_string(id), "gracePeriod", runner_int(grace), NULL));
}
RUNNER_API runner_json *runner_api_key_revoke(runner_text id) {
  return runner_call("apiKeys.revoke", runner_object("id", runner_string(id), NULL));
}

RUNNER_API runner_json *runner_session_create(runner_json *options) { return runner_call("sessions.create", options); }
RUNNER_API runner_json *runner_session_revoke(runner_text id) {
  runner_json *args = runner_make(RUNNER_OBJECT);
  if (!runner_is(id, "current")) runner_put(args, "id", runner_string(id));
  return runner_call("sessions.revoke", args);
}

RUNNER_API runner_json *runner_session_list(runner_json *options) {
  if (!runner_is_null(runner_member(options, "limit"))) return runner_call("sessions.list", options);
  runner_json *all = runner_array(), *cursor = runner_member(options, "cursor");
  do {
    runner_json *args = runner_make(RUNNER_OBJECT);
    RUNNER_EACH(member, options) {
      if (!runner_is(member->name, "cursor") && !runner_is(member->name, "limit")) runner_put_text(args, member->name, member);
    }
    runner_put(runner_put(args, "limit", runner_int(1000)), "cursor", cursor);
    runner_json *page = runner_call("sessions.list", args);
    if (!page) return NULL;
    RUNNER_EACH(session, runner_member(page, "sessions")) runner_push(all, session);
    cursor = runner_member(page, "nextCursor");
  } while (!runner_is_null(cursor));
  return runner_object("sessions", all, "nextCursor", runner_null(), NULL);
}
RUNNER_API int64_t runner_session_revoke_all(runner_json *options) {
  return runner_as_int(runner_member(runner_call("sessions.revokeAll", options), "count"), 0);
}

RUNNER_API runner_json *runner_job_enqueue(const char *name, runner_json *params, runner_json *options) {
  runner_json *args = options ? options : runner_make(RUNNER_OBJECT);
  runner_put(args, "name", runner_str(name));
  if (params) runner_put(args, "params", params);
  return runner_call("jobs.enqueue", args);
}
RUNNER_API bool runner_job_cancel(runner_text id) {
  return runner_as_bool(runner_member(runner_call("jobs.cancel", runner_object("id", runner_string(id), NULL)), "cancelled"), false);
}

RUNNER_API runner_json *runner_webhook_verify(const char *scheme, const char *secret) {
  return runner_call("webhooks.verify", runner_object("scheme", runner_str(scheme), "secret", runner_str(secret), NULL));
}

/* Appends bytes as base64. */
RUNNER_API void runner_append_base64(runner_buffer *b, const void *bytes, size_t len) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const unsigned char *s = (const unsigned char *)bytes;
  for (size_t i = 0; i < len; i += 3) {
    size_t left = len - i;
    uint32_t n = (uint32_t)s[i] << 16 | (left > 1 ? (uint32_t)s[i + 1] << 8 : 0) | (left > 2 ? s[i + 2] : 0);
    char four[4] = {digits[n >> 18], digits[n >> 12 & 63], left > 1 ? digits[n >> 6 & 63] : '=', left > 2 ? digits[n & 63] : '='};
    runner_append(b, four, 4);
  }
}

RUNNER_API runner_json *runner_base64(runner_text bytes) {
  runner_buffer b = {NULL, 0, 0, false};
  runner_append_base64(&b, bytes.data, bytes.len);
  return runner_object("base64", runner_string(runner_finish(&b)), NULL);
}

RUNNER_API runner_json *runner_bytes(runner_text bytes) {
  return runner_is_utf8(bytes) ? runner_string(bytes.data ? bytes : runner_t("")) : runner_base64(bytes);
}

RUNNER_API int runner_base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Whether a text can be base64: its length is that of whole groups. *len becomes that of its digits. */
RUNNER_API bool runner_base64_digits(runner_text t, size_t *len) {
  *len = t.len;
  while (*len && t.len - *len < 2 && t.data[*len - 1] == '=') (*len)--;
  return t.data && t.len % 4 == 0;
}

/* Decodes base64 into memory for len / 4 * 3 + 3 bytes, of which it may use less; false if it is not base64. */
RUNNER_API bool runner_decode_base64(const char *digits, size_t len, char *to) {
  uint32_t bits = 0;
  for (size_t i = 0; i < len; i++) {
    int digit = runner_base64_digit(digits[i]);
    if (digit < 0) return false;
    bits = bits << 6 | (uint32_t)digit;
    if (i % 4 == 1) *to++ = (char)(bits >> 4);
    if (i % 4 == 2) *to++ = (char)(bits >> 2);
    if (i % 4 == 3) *to++ = (char)bits;
  }
  return true;
}

RUNNER_API runner_text runner_as_bytes(const runner_json *value) {
  runner_text none = {NULL, 0}, t = runner_as_text(value);
  if (t.data) return t;
  size_t len;
  t = runner_as_text(runner_member(value, "base64"));
  if (!runner_base64_digits(t, &len)) return none;
  char *own = (char *)runner_alloc(len / 4 * 3 + 3);
  if (!runner_decode_base64(t.data, len, own)) return none;
  t.data = own;
  t.len = len * 3 / 4;
  return t;
}

RUNNER_API runner_json *runner_digest(const char *algorithm, runner_text data) {
  return runner_call("digest", runner_object("algorithm", runner_str(algorithm), "data", runner_bytes(data), NULL));
}
RUNNER_API runner_json *runner_hmac_with_secret(const char *algorithm, const char *secret, runner_text data) {
  return runner_call("hmac", runner_object("algorithm", runner_str(algorithm), "secret", runner_str(secret), "data", runner_bytes(data), NULL));
}
RUNNER_API runner_json *runner_hmac(const char *algorithm, runner_text key, runner_text data) {
  return runner_call("hmac", runner_object("algorithm", runner_str(algorithm), "key", runner_bytes(key), "data", runner_bytes(data), NULL));
}
RUNNER_API bool runner_timing_safe_equal(runner_text a, runner_text b) {
  runner_json *result = runner_call("timingSafeEqual", runner_object("a", runner_bytes(a), "b", runner_bytes(b), NULL));
  return runner_as_bool(runner_member(result, "equal"), false);
}

RUNNER_API runner_text runner_password_hash(runner_text password) {
  return runner_as_text(runner_member(runner_call("password.hash", runner_object("password", runner_string(password), NULL)), "hash"));
}
RUNNER_API runner_json *runner_password_verify(runner_text password, runner_text hash) {
  runner_json *arguments = runner_object("password", runner_string(password), NULL);
  if (hash.data) runner_put(arguments, "hash", runner_string(hash));
  return runner_call("password.verify", arguments);
}

/* ---- Files ---- */

RUNNER_API runner_json *runner_form(void) {
  if (!runner_now.form) runner_now.form = runner_call("request.form", NULL);
  return runner_now.form;
}

/* A list of fields has pairs of a name and a text. */
RUNNER_API runner_pair runner_pair_of(const runner_json *field) {
  const runner_json *name = runner_items(field);
  runner_pair p = {runner_as_text(name), runner_as_text(name ? name->next : NULL)};
  return p;
}

RUNNER_API runner_text runner_form_text(const char *name) {
  RUNNER_EACH(field, runner_member(runner_form(), "fields")) {
    runner_pair p = runner_pair_of(field);
    if (runner_is(p.name, name)) return p.value;
  }
  return runner_t(NULL);
}

RUNNER_API runner_json *runner_form_all(const char *name) {
  runner_json *list = runner_array();
  RUNNER_EACH(field, runner_member(runner_form(), "fields")) {
    runner_pair p = runner_pair_of(field);
    if (runner_is(p.name, name)) runner_push(list, runner_string(p.value));
  }
  return list;
}

RUNNER_API const runner_pair *runner_form_fields(size_t *count) {
  const runner_json *fields = runner_member(runner_form(), "fields");
  runner_pair *list = (runner_pair *)runner_alloc((runner_length(fields) + 1) * sizeof *list);
  *count = 0;
  RUNNER_EACH(field, fields) list[(*count)++] = runner_pair_of(field);
  return list;
}

RUNNER_API runner_file runner_as_file(const runner_json *value) {
  runner_file f;
  f.id = runner_as_text(runner_member(value, "id"));
  f.name = runner_as_text(runner_member(value, "name"));
  f.type = runner_as_text(runner_member(value, "type"));
  f.size = runner_as_int(runner_member(value, "size"), 0);
  f.sha256 = runner_as_text(runner_member(value, "sha256"));
  f.field = runner_as_text(runner_member(value, "field"));
  f.declared = runner_as_text(runner_member(value, "declared"));
  return f;
}

RUNNER_API runner_file runner_form_file(const char *field) {
  RUNNER_EACH(file, runner_member(runner_form(), "files"))
    if (runner_is(runner_as_text(runner_member(file, "field")), field)) return runner_as_file(file);
  return runner_as_file(NULL);
}

RUNNER_API const runner_file *runner_form_files(size_t *count) {
  const runner_json *files = runner_member(runner_form(), "files");
  runner_file *list = (runner_file *)runner_alloc((runner_length(files) + 1) * sizeof *list);
  *count = 0;
  RUNNER_EACH(file, files) list[(*count)++] = runner_as_file(file);
  return list;
}

RUNNER_API runner_json *runner_file_json(runner_file f) {
  if (!f.id.data) return runner_string(f.id);
  return runner_object("id", runner_string(f.id), "name", runner_string(f.name), "type", runner_string(f.type),
      "size", runner_int(f.size), "sha256", runner_string(f.sha256), NULL);
}

/* How many bytes an operation reads and writes. What is written is sent as base64, but for short texts: escapes make
 * a text up to six times as long. */
enum { RUNNER_READ_PART = 1 << 20, RUNNER_WRITE_PART = 768 << 10, RUNNER_WRITE_TEXT = RUNNER_WRITE_PART / 4 };

RUNNER_API runner_json *runner_about_file(const char *name, const char *type) {
  runner_json *about = runner_object("name", runner_str(name ? name : "file"), NULL);
  return type && *type ? runner_put(about, "type", runner_str(type)) : about;
}

RUNNER_API runner_file runner_file_create(const char *name, const char *type, runner_text contents) {
  if (contents.len > RUNNER_WRITE_PART) {
    int64_t writer = runner_file_open(name, type);
    runner_file_write(writer, contents.data, contents.len);
    return runner_file_end(writer);
  }
  runner_json *data = contents.len > RUNNER_WRITE_TEXT ? runner_base64(contents) : runner_bytes(contents);
  return runner_as_file(runner_call("file.create", runner_put(runner_about_file(name, type), "data", data)));
}

RUNNER_API int64_t runner_file_open(const char *name, const char *type) {
  return runner_as_int(runner_member(runner_call("file.open", runner_about_file(name, type)), "writer"), 0);
}

RUNNER_API bool runner_file_write(int64_t writer, const void *bytes, size_t len) {
  static const char operation[] = "file.write";
  const char *from = (const char *)bytes;
  runner_buffer b = {NULL, 0, 0, false}; /* of all parts: a file may be larger than memory */
  while (len > 0 && !runner_now.failure) {
    size_t part = len < RUNNER_WRITE_PART ? len : RUNNER_WRITE_PART;
    static const char head[] = "{\"data\":{\"base64\":\"";
    char tail[48];
    snprintf(tail, sizeof tail, "\"},\"writer\":%lld}", (long long)writer);
    b.len = 0;
    runner_append(&b, head, sizeof head - 1);
    runner_append_base64(&b, from, part);
    runner_append(&b, tail, strlen(tail));
    runner_done(operation, runner_host_call(operation, sizeof operation - 1, b.data, (uint32_t)b.len));
    from += part;
    len -= part;
  }
  free(b.data);
  return !runner_now.failure;
}

RUNNER_API runner_file runner_file_end(int64_t writer) {
  return runner_as_file(runner_call("file.end", runner_object("writer", runner_int(writer), NULL)));
}

/* Moves the data of a result to memory for cap bytes, and returns how many there are; SIZE_MAX if they are more, or none. */
RUNNER_API size_t runner_take_data(const runner_json *data, char *to, size_t cap) {
  runner_text t = runner_as_text(data);
  if (t.data) {
    if (t.len > cap) return SIZE_MAX;
    memcpy(to, t.data, t.len);
    return t.len;
  }
  size_t len;
  t = runner_as_text(runner_member(data, "base64"));
  if (!runner_base64_digits(t, &len) || len * 3 / 4 > cap || !runner_decode_base64(t.data, len, to)) return SIZE_MAX;
  return len * 3 / 4;
}

/* Reads the next bytes, of which the host is asked for so many, to memory for cap bytes. */
RUNNER_API size_t runner_file_take(runner_text id, int64_t offset, size_t length, void *to, size_t cap) {
  static const char operation[] = "file.read";
  if (runner_now.failure) return 0;
  runner_text args; /* it is freed, and so is the result: a file may be larger than memory */
  if (!runner_write_arguments(operation, runner_object("id", runner_string(id), "offset", runner_int(offset),
          "length", runner_int((int64_t)length), NULL), &args)) return 0;
  int32_t n = runner_host_call(operation, sizeof operation - 1, args.data, (uint32_t)args.len);
  free((void *)args.data);
  if (!runner_done(operation, n)) return 0;
  n = runner_host_call_result(0, NULL, 0);
  if (!runner_done(operation, n)) return 0;
  char *text = (char *)malloc((size_t)n + RUNNER_BEHIND);
  if (!text) runner_panic("out of memory");
  memset(text + n, 0, RUNNER_BEHIND);
  n = runner_host_call_result(0, text, (uint32_t)n);
  size_t read = 0;
  if (runner_done(operation, n)) {
    runner_text result = {text, (size_t)n};
    read = runner_take_data(runner_member(runner_parse_own(RUNNER_DEPTH, result, NULL), "data"), (char *)to, cap);
    if (read == SIZE_MAX) {
      runner_note("internal", runner_t("the host's result is not a part of a file"));
      runner_now.inner = true;
      read = 0;
    }
  }
  free(text);
  return read;
}

RUNNER_API size_t runner_file_read_part(runner_file file, int64_t offset, void *to, size_t cap) {
  if (cap > RUNNER_READ_PART) cap = RUNNER_READ_PART;
  return cap == 0 ? 0 : runner_file_take(file.id, offset, cap, to, cap);
}

RUNNER_API runner_text runner_file_read(runner_file file) {
  if (file.size > INT32_MAX) runner_panic("out of memory");
  size_t at = 0, size = file.size > 0 ? (size_t)file.size : 0;
  char *own = runner_text_room(size);
  while (at < size) {
    size_t read = runner_file_take(file.id, (int64_t)at, RUNNER_READ_PART, own + at, size - at);
    if (read == 0) {
      runner_note("internal", runner_t("the file ends early"));
      return runner_t(NULL);
    }
    at += read;
  }
  runner_text t = {own, size};
  return t;
}

RUNNER_API runner_text runner_file_sign(runner_file file, int64_t seconds, const char *disposition, const char *name) {
  runner_json *args = runner_object("id", runner_string(file.id), "expires", runner_int(seconds), NULL);
  if (disposition) runner_put(args, "disposition", runner_str(disposition));
  if (name) runner_put(args, "name", runner_str(name));
  return runner_as_text(runner_member(runner_call("file.sign", args), "url"));
}

/* ---- Answers ---- */

RUNNER_API runner_response runner_answer(int status, runner_text body) {
  runner_response r;
  memset(&r, 0, sizeof r);
  r.status = status;
  r.body = body;
  return r;
}

RUNNER_API runner_response runner_ok(const runner_json *body) { return runner_answer(200, runner_print(body)); }
RUNNER_API runner_response runner_ok_bytes(runner_text body) { return runner_answer(200, body); }
RUNNER_API runner_response runner_no_content(void) { return runner_answer(204, runner_t(NULL)); }

RUNNER_API runner_response runner_with_header(runner_response r, const char *name, const char *value) {
  runner_line *line = (runner_line *)runner_alloc(sizeof *line);
  line->name = name;
  line->value = value;
  if (r.last) r.last->next = line;
  else r.headers = line;
  r.last = line;
  return r;
}

RUNNER_API runner_response runner_created(const runner_json *body, const char *location) {
  runner_response r = runner_answer(201, runner_print(body));
  return location && *location ? runner_with_header(r, "location", location) : r;
}

RUNNER_API runner_response runner_redirect_with(int status, const char *location) {
  if (status < 301 || status > 308 || (status > 303 && status < 307))
    return runner_fail("%d is not a redirect: use 301, 302, 303, 307 or 308", status);
  return runner_with_header(runner_answer(status, runner_t(NULL)), "location", location);
}

RUNNER_API runner_response runner_redirect(const char *location) { return runner_redirect_with(302, location); }

RUNNER_API runner_response runner_failure(int status, const char *format, va_list values) {
  runner_response r = runner_answer(status, runner_t(NULL));
  r.failure = true;
  r.message = runner_vformat(format, values).data;
  return r;
}

#define RUNNER_FAILURE(status)                              \
  va_list values;                                           \
  va_start(values, format);                                 \
  runner_response r = runner_failure(status, format, values); \
  va_end(values)

RUNNER_API runner_response runner_bad_request(const char *format, ...) {
  RUNNER_FAILURE(400);
  return r;
}
RUNNER_API runner_response runner_unauthorized(const char *format, ...) {
  RUNNER_FAILURE(401);
  return r;
}
RUNNER_API runner_response runner_forbidden(const char *format, ...) {
  RUNNER_FAILURE(403);
  return r;
}
RUNNER_API runner_response runner_not_found(const char *format, ...) {
  RUNNER_FAILURE(404);
  return r;
}
RUNNER_API runner_response runner_error(int status, const char *format, ...) {
  RUNNER_FAILURE(status);
  return r;
}
RUNNER_API runner_response runner_fail(const char *format, ...) {
  RUNNER_FAILURE(500);
  r.failed = true;
  return r;
}
#undef RUNNER_FAILURE

RUNNER_API runner_response runner_send_file(runner_file file, runner_send_options options) {
  runner_response r = runner_answer(options.status ? options.status : 200, runner_t(NULL));
  r.file = runner_object("id", runner_string(file.id), "status", runner_int(r.status), NULL);
  if (options.disposition) runner_put(r.file, "disposition", runner_str(options.disposition));
  if (options.name) runner_put(r.file, "name", runner_str(options.name));
  if (options.cache) runner_put(r.file, "cache", runner_str(options.cache));
  return r;
}

RUNNER_API runner_response runner_hand_on(runner_op *op, int part) {
  if (part == RUNNER_PART_ROW) runner_ask_for_one(op);
  runner_run(op->name, op->args);
  runner_response r = runner_answer(200, runner_t(NULL));
  r.handed_on = true;
  r.part = part;
  r.message = op->entity;
  return r;
}

RUNNER_API runner_response runner_ok_rows(runner_op *op) { return runner_hand_on(op, RUNNER_PART_ROWS); }
RUNNER_API runner_response runner_ok_row(runner_op *op) { return runner_hand_on(op, RUNNER_PART_ROW); }
RUNNER_API runner_response runner_ok_page(runner_op *op) { return runner_hand_on(op, RUNNER_PART_ALL); }

/* ---- Answers in parts ---- */

/* Looks at what a function of the host gave for an answer; a failure becomes the request's. */
RUNNER_API bool runner_accepted(const char *act, int32_t n) {
  if (n >= 0) return true;
  if (!runner_now.failure) {
    runner_note(runner_errno_name(n), runner_t(act));
    runner_now.inner = true;
  }
  return false;
}

RUNNER_API bool runner_add_header(const char *name, const char *value) {
  if (runner_now.failure) return false;
  return runner_accepted(runner_format("set header \"%s\"", name),
      runner_host_response_header(name, (uint32_t)strlen(name), value, (uint32_t)strlen(value)));
}

RUNNER_API bool runner_begin(int status) {
  if (runner_now.failure) return false;
  return runner_accepted(runner_format("begin an answer with status %d", status), runner_host_response_begin((uint32_t)status));
}

RUNNER_API bool runner_begin_events(void) { return runner_add_header("content-type", "text/event-stream") && runner_begin(200); }

RUNNER_API bool runner_write(const void *bytes, size_t len) {
  if (runner_now.failure) return false;
  int32_t n = runner_host_response_write(bytes, (uint32_t)len);
  if (n < 0 && strcmp(runner_errno_name(n), "unavailable") == 0) return false;
  return runner_accepted("write a part of the answer", n);
}

RUNNER_API void runner_append_field(runner_buffer *b, const char *name, const char *value, size_t len) {
  runner_append(b, name, strlen(name));
  runner_append(b, value, len);
  runner_append_byte(b, '\n');
}

RUNNER_API bool runner_write_event(runner_event e) {
  const char *event = e.event ? e.event : "", *id = e.id ? e.id : "";
  if (strpbrk(event, "\r\n") || strpbrk(id, "\r\n")) {
    runner_note("invalid", runner_t("the type or the id of an event has a line end"));
    return false;
  }
  runner_buffer b = {NULL, 0, 0, false};
  if (*event) runner_append_field(&b, "event: ", event, strlen(event));
  if (*id) runner_append_field(&b, "id: ", id, strlen(id));
  if (e.retry > 0) {
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)e.retry);
    runner_append_field(&b, "retry: ", digits, strlen(digits));
  }
  if (e.data.len || *event) { /* else the client would see an empty message */
    const char *at = e.data.data, *end = at ? at + e.data.len : at;
    for (;;) {
      const char *from = at;
      while (at < end && *at != '\r' && *at != '\n') at++;
      runner_append_field(&b, "data: ", from, (size_t)(at - from));
      if (at == end) break;
      at += *at == '\r' && at + 1 < end && at[1] == '\n' ? 2 : 1;
    }
  }
  runner_append_byte(&b, '\n');
  bool sent = runner_write(b.data, b.len);
  free(b.data); /* an answer may have many events */
  return sent;
}

RUNNER_API runner_response runner_end(void) { return runner_answer(0, runner_t(NULL)); }

/* ---- From a request to its answer ---- */

RUNNER_API void runner_send_problem(int status, const char *code, runner_text message) {
  runner_host_response_error((uint32_t)status, code, (uint32_t)strlen(code), message.data ? message.data : "", (uint32_t)message.len);
}

/* Answers for a handler that failed; the log says why. */
RUNNER_API void runner_send_failed(const char *why) {
  runner_log((runner_level)4, "error\n%s", why); /* the host's level for why a handler fails */
  runner_send_problem(500, "handler_failed", runner_t(""));
}

/* Answers for a failure that was not caught. */
RUNNER_API void runner_send_uncaught(void) {
  static const struct {
    const char *failure;
    int status;
    const char *code;
  } answers[] = {
      {"not_found", 404, "not_found"}, {"denied", 403, "forbidden"},         {"conflict", 409, "conflict"},
      {"unavailable", 503, "unavailable"}, {"invalid_json", 400, "invalid_json"},
  };
  for (size_t i = 0; i < sizeof answers / sizeof *answers && !runner_now.inner; i++) {
    if (strcmp(answers[i].failure, runner_now.failure) == 0) {
      runner_send_problem(answers[i].status, answers[i].code, runner_now.why);
      return;
    }
  }
  runner_send_failed(runner_format("%s: %s", runner_now.failure, runner_now.why.data ? runner_now.why.data : ""));
}

RUNNER_API runner_response runner_with_code(runner_response r, const char *code) {
  r.code = runner_copy(code, strlen(code));
  return r;
}

RUNNER_API runner_response runner_with_member(runner_response r, const char *name, runner_json *value) {
  if (!r.members) r.members = runner_make(RUNNER_OBJECT);
  runner_put(r.members, name, value);
  return r;
}

/* Answers with a failure that has a code or members. */
RUNNER_API void runner_send_members(runner_response r) {
  runner_json *args = runner_make(RUNNER_OBJECT);
  runner_put(args, "status", runner_int(r.status));
  runner_put(args, "code", runner_string(r.code.data ? r.code : runner_t("")));
  runner_put(args, "detail", runner_string(runner_t(r.message)));
  runner_put(args, "members", r.members ? r.members : runner_make(RUNNER_OBJECT));
  if (!runner_run("problem", args))
    runner_send_failed(runner_format("answer with status %d: %s", r.status, runner_now.why.data ? runner_now.why.data : runner_now.failure));
}

RUNNER_API void runner_send(runner_response r) {
  int32_t n = 0;
  const char *act = "";
  for (runner_line *h = r.headers; h && n >= 0; h = h->next) {
    act = runner_format("set header \"%s\"", h->name);
    n = runner_host_response_header(h->name, (uint32_t)strlen(h->name), h->value, (uint32_t)strlen(h->value));
  }
  if (n >= 0) {
    act = runner_format("answer with status %d", r.status);
    if (r.failure && (r.code.data || r.members)) {
      runner_send_members(r);
      return;
    }
    if (r.file) {
      if (!runner_run("file.send", r.file))
        runner_send_failed(runner_format("answer with a file: %s: %s", runner_now.failure, runner_now.why.data ? runner_now.why.data : ""));
      return;
    }
    if (r.failure) {
      n = runner_host_response_error((uint32_t)r.status, "", 0, r.message, (uint32_t)strlen(r.message));
    } else if (r.handed_on) {
      n = runner_host_response_send_result((uint32_t)r.status, (uint32_t)r.part);
      if (n < 0 && r.part == RUNNER_PART_ROW && strcmp(runner_errno_name(n), "not_found") == 0) {
        runner_send_problem(404, "not_found", runner_t(runner_format("no row of %s matches the conditions", r.message)));
        return;
      }
    } else {
      n = runner_host_response_send((uint32_t)r.status, r.body.data, (uint32_t)r.body.len);
    }
  }
  if (n < 0) runner_send_failed(runner_format("%s: %s", act, runner_errno_name(n)));
}

RUNNER_API void runner_serve(const char *name, runner_handler *handler) {
  runner_now.handler = name;
  runner_response r = handler();
  if (runner_now.failure) runner_send_uncaught();
  else if (r.failed) runner_send_failed(r.message);
  else if (r.status) runner_send(r);
}

#ifdef __cplusplus
}
#endif

#endif
