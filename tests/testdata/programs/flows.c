// A CGI program whose output is sent as it comes: it writes a line, and then waits.
#include <stdio.h>
#include <unistd.h>

int main(void) {
  printf("Content-Type: text/plain\n\n");
  printf("begun\n");
  fflush(stdout);
  sleep(50);
  printf("late\n");
  return 0;
}
