// Answers with the size of the request's body. Without a body it fails.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  static char part[5000];
  size_t size = 0, n;
  while ((n = fread(part, 1, sizeof part, stdin)) > 0) size += n;
  if (size == 0) {
    fputs("no bytes\n", stderr);
    return 1;
  }
  printf("Content-Type: text/plain\n\n%s has %zu bytes\n", getenv("REQUEST_METHOD"), size);
}
