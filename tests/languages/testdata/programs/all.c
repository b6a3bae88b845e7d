// A CGI program. The path, GET /c/<what>, selects what it does.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

// A program may import the runner's other functions too.
__attribute__((import_module("runner"), import_name("context"))) int runner_context(char *buf, int cap);

static int runs;
static char stained[1 << 16];

static void body(void) {
  static char piece[10000];
  size_t n;
  while ((n = fread(piece, 1, sizeof piece, stdin)) > 0)
    fwrite(piece, 1, n, stdout);
}

int main(int argc, char **argv) {
  const char *what = getenv("RUNNER_PARAM_what");
  runs++;
  for (size_t i = 0; i < sizeof stained; i++)
    runs += stained[i], stained[i] = 1;
  if (strcmp(what, "env") == 0) {
    printf("Content-Type: text/plain\n\n");
    for (char **v = environ; *v; v++)
      puts(*v);
  } else if (strcmp(what, "echo") == 0) {
    printf("Content-Type: application/octet-stream\n\n");
    body();
  } else if (strcmp(what, "runs") == 0) {
    printf("Content-Type: text/plain\n\n%d run as %s of %d", runs, argv[0], argc);
    exit(0);
  } else if (strcmp(what, "context") == 0) {
    char text[1000];
    int n = runner_context(text, sizeof text);
    printf("Content-Type: application/json\n\n%.*s", n, text);
  } else if (strcmp(what, "moved") == 0) {
    printf("Location: /c/env\n\n");
  } else if (strcmp(what, "gone") == 0) {
    printf("Status: 410 Gone\r\nContent-Type: text/plain\r\nContent-Length: 99\r\n\r\nit is gone\n");
  } else if (strcmp(what, "words") == 0) {
    printf("only words");
  } else if (strcmp(what, "fail") == 0) {
    fprintf(stderr, "this went wrong\n");
    printf("Content-Type: text/plain\n\nhalf");
    return 3;
  } else if (strcmp(what, "abort") == 0) {
    printf("Content-Type: text/plain\n\n");
    abort();
  } else if (strcmp(what, "loop") == 0) {
    for (volatile int i = 0;; i++)
      ;
  } else if (strcmp(what, "flood") == 0) {
    printf("Content-Type: text/plain\n\n");
    while (fwrite(stained, 1, sizeof stained, stdout) == sizeof stained)
      ;
    return 0;
  } else if (strcmp(what, "files") == 0) {
    FILE *f = fopen("/etc/passwd", "r");
    printf("Content-Type: text/plain\n\n%s %d %d %d", f ? "open" : errno == ENOENT ? "none" : strerror(errno), isatty(0), isatty(1), getchar());
  }
  return 0;
}
