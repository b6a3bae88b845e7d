/*
 * Reads texts from its standard input and writes for each what the reader of JSON
 * and the writer make of it: both ways a little-endian length, then the bytes.
 * Text that is not JSON gives an empty line. Base64 must give back every text, and
 * numbers what the text is in memory. With the argument "numbers" every number is
 * converted and written anew.
 */
#include "runner.h"

void runner_host_log(uint32_t level, const char *text, uint32_t len) { fprintf(stderr, "log %u %.*s\n", level, (int)len, text); }

static int read_length(uint32_t *n) {
  unsigned char b[4];
  if (fread(b, 1, 4, stdin) != 4) return 0;
  *n = runner_little(b);
  return 1;
}

static void write_text(runner_text t) {
  unsigned char b[4] = {(unsigned char)t.len, (unsigned char)(t.len >> 8), (unsigned char)(t.len >> 16), (unsigned char)(t.len >> 24)};
  fwrite(b, 1, 4, stdout);
  fwrite(t.data, 1, t.len, stdout);
}

/* Touches everything, as handlers do. */
static void look(const runner_json *v) {
  runner_as_int(v, 0);
  runner_as_number(v, 0);
  runner_as_text(v);
  runner_member(v, "a");
  RUNNER_EACH(item, v) look(item);
}

/* The same value with numbers that the SDK has written. */
static runner_json *rewrite(runner_json *v) {
  if (v->kind == RUNNER_NUMBER) return runner_number(runner_as_number(v, 0));
  if (v->kind != RUNNER_ARRAY) return v;
  runner_json *list = runner_array();
  RUNNER_EACH(item, v) runner_push(list, rewrite(item));
  return list;
}

int main(int count, char **arguments) {
  bool numbers = count > 1 && strcmp(arguments[1], "numbers") == 0;
  for (uint32_t n; read_length(&n);) {
    char *exact = (char *)malloc(n ? n : 1); /* a byte too far is seen */
    if (!exact || fread(exact, 1, n, stdin) != n) return 1;
    runner_text text = {exact, n};
    const char *why = NULL;
    runner_json *v = runner_parse(text, &why);
    if (!v && !why) return 2;
    runner_text back = runner_as_bytes(runner_clone(runner_bytes(text)));
    if (back.len != n || memcmp(back.data, exact, n) != 0) return 3;
    int64_t whole = 0;
    memcpy(&whole, exact, n < 8 ? n : 8);
    char digits[32];
    snprintf(digits, sizeof digits, "%lld", (long long)whole);
    runner_json *number = runner_int(whole);
    if (!runner_is(number->text, digits) || runner_as_int(number, ~whole) != whole) return 4;
    double real = 0;
    memcpy(&real, exact, n < 8 ? n : 8);
    if (isfinite(real) && runner_as_number(runner_number(real), real + 1) != real) return 5;
    free(exact); /* nothing may point into it any more */
    if (v) {
      look(v);
      write_text(runner_print(numbers ? rewrite(v) : runner_clone(v)));
    } else {
      write_text(runner_t(""));
    }
    fflush(stdout);
  }
  return 0;
}
