#undef NDEBUG
#include "greeting.h"

#include <assert.h>
#include <stdio.h>

int main(void) {
  assert(greeting_possible("world"));
  assert(!greeting_possible("nobody"));
  assert(greeting_possible("nobody else"));
  puts("ok");
  return 0;
}
