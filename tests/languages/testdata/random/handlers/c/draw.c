/* Draws from each random source of C. A constructor has drawn from them too. */
#include "runner.h"

#include <unistd.h>

extern uint32_t arc4random(void); /* not declared for WASI */
extern uint32_t arc4random_uniform(uint32_t bound);
extern void arc4random_buf(void *buffer, size_t size);

static double early;

__attribute__((constructor)) static void draw_early(void) { early = rand() + random() + arc4random() + drand48(); }

#define MEMBER(name, ...) name, runner_string(runner_t(runner_format(__VA_ARGS__)))

RUNNER_HANDLER(drawC) {
  uint64_t system, buffer;
  getentropy(&system, sizeof system);
  arc4random_buf(&buffer, sizeof buffer);
  return runner_ok(runner_object(
      MEMBER("rand", "%d %d %d", rand(), rand(), rand()),
      MEMBER("random", "%ld %ld %ld", random(), random(), random()),
      MEMBER("drand48", "%a %a", drand48(), drand48()),
      MEMBER("lrand48", "%ld %ld %ld", lrand48(), lrand48(), lrand48()),
      MEMBER("mrand48", "%ld %ld", mrand48(), mrand48()),
      MEMBER("arc4random", "%u %u", arc4random(), arc4random()),
      MEMBER("arc4random_uniform", "%u %u %u", arc4random_uniform(1 << 30), arc4random_uniform(1 << 30), arc4random_uniform(1 << 30)),
      MEMBER("arc4random_buf", "%llx", (unsigned long long)buffer),
      MEMBER("getentropy", "%llx", (unsigned long long)system), NULL));
}

RUNNER_HANDLER(drawSeededC) {
  srand(42);
  srandom(42);
  srand48(42);
  return runner_ok(runner_object(
      MEMBER("rand", "%d %d", rand(), rand()),
      MEMBER("random", "%ld %ld", random(), random()),
      MEMBER("drand48", "%a", drand48()), NULL));
}
