/*
 * Reports of abort and of failed assertions, so that the log of the runner says why a handler
 * failed ("Reports of failures" in docs/abi/functions.md). `runner build` links this file to every
 * module in C or C++. The functions replace those of the C and C++ libraries; a module may define
 * its own.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

__attribute__((import_module("runner"), import_name("log"))) extern void runner_failure_log(uint32_t level, const char *text, uint32_t len);

enum { LEVEL_FAILURE = 4, MAX_REPORT = 1024 };

/* report writes why the module fails: the kind in plain words, a newline, and a message. */
static _Noreturn void report(const char *format, va_list values) {
  char text[MAX_REPORT];
  int length = vsnprintf(text, sizeof text, format, values);
  if (length >= (int)sizeof text) length = sizeof text - 1;
  if (length > 0) runner_failure_log(LEVEL_FAILURE, text, length);
  __builtin_trap();
}

static _Noreturn __attribute__((format(printf, 1, 2))) void fail(const char *format, ...) {
  va_list values;
  va_start(values, format);
  report(format, values);
}

__attribute__((weak)) _Noreturn void abort(void) {
  runner_failure_log(LEVEL_FAILURE, "abort", 5); /* no text to format: most modules have abort */
  __builtin_trap();
}

/* What assert calls. */
__attribute__((weak)) _Noreturn void __assert_fail(const char *expression, const char *file, int line, const char *function) {
  (void)function; /* it is the first of the active calls that the host sees */
  fail("assertion failed\n%s\n    at %s:%d", expression, file, line);
}

/* What the C++ library calls instead of throwing, by its names in two versions of its ABI. */
#define RUNNER_VERBOSE_ABORT(name, symbol)                                                 \
  _Noreturn void name(const char *format, ...) __asm__(symbol);                            \
  __attribute__((weak)) _Noreturn void name(const char *format, ...) {                     \
    char with_kind[MAX_REPORT];                                                            \
    snprintf(with_kind, sizeof with_kind, "abort\n%s", format);                            \
    va_list values;                                                                        \
    va_start(values, format);                                                              \
    report(with_kind, values);                                                             \
  }
RUNNER_VERBOSE_ABORT(runner_verbose_abort_1, "_ZNSt3__122__libcpp_verbose_abortEPKcz")
RUNNER_VERBOSE_ABORT(runner_verbose_abort_2, "_ZNSt3__222__libcpp_verbose_abortEPKcz")
