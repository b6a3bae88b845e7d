// What is measured of a program that waits for its requests: the handlers in C, called by a program that starts once.
#include "../c/handlers/guest/guest.c"

int main(void) {
  static void (*const handlers[])(void) = {runner_export_hello, runner_export_order, runner_export_hundred};
  static const char names[] = "hello\norder\nhundred";
  int which;
  while ((which = runner_host_request_next(names, sizeof names - 1)) >= 0) handlers[which]();
}
