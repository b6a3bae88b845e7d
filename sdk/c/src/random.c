/*
 * The random state of the C library, which the runner renews at the start of every request (see
 * runner_random in docs/abi/modules.md). `runner build` links this file to every module in C or
 * C++. A module that is compiled by hand needs it too: otherwise rand, random, drand48 and
 * arc4random give every request the same values.
 */
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Functions of the library that a module may lack. */
extern char *initstate(unsigned seed, char *state, size_t size) __attribute__((weak));
extern char *setstate(char *state) __attribute__((weak));
extern unsigned short __seed48[7] __attribute__((weak));

/*
 * rand and srand replace those of the library, whose state cannot be reached. Without srand in the
 * request, rand returns other values in every request; after it, those of the library.
 */
static uint64_t seed;

__attribute__((weak)) void srand(unsigned s) { seed = s - 1; }

__attribute__((weak)) int rand(void) {
  seed = 6364136223846793005u * seed + 1;
  return seed >> 33;
}

/* The library's arc4random keeps a key in memory; these ask the host. */
__attribute__((weak)) void arc4random_buf(void *buffer, size_t size) {
  unsigned char *at = buffer;
  while (size > 0) {
    size_t part = size < 256 ? size : 256; /* the most that getentropy returns */
    if (getentropy(at, part) != 0) __builtin_trap();
    at += part;
    size -= part;
  }
}

__attribute__((weak)) uint32_t arc4random(void) {
  uint32_t value;
  arc4random_buf(&value, sizeof value);
  return value;
}

__attribute__((weak)) uint32_t arc4random_uniform(uint32_t bound) {
  if (bound < 2) return 0;
  uint32_t value;
  do value = arc4random();
  while (value < -bound % bound); /* 2^32 modulo bound */
  return value % bound;
}

static struct {
  uint32_t count;
  struct {
    void *address;
    uint32_t length;
  } regions[3];
} table = {3, {{&seed, sizeof seed}, {NULL, 0}, {NULL, 0}}};

__attribute__((export_name("runner_random"))) void *runner_random(void) {
  if (initstate && setstate) {
    /* initstate returns the state before it. Its first word has the number of the others in its
     * upper half; 0 stands for 1. */
    char other[8];
    char *state = initstate(1, other, sizeof other);
    setstate(state);
    uint32_t words = *(uint32_t *)(void *)state >> 16;
    table.regions[1].address = state + 4;
    table.regions[1].length = 4 * (words > 0 ? words : 1);
  }
  if (__seed48) { /* its first three words are the state of drand48, lrand48 and mrand48 */
    table.regions[2].address = __seed48;
    table.regions[2].length = 3 * sizeof __seed48[0];
  }
  return &table;
}
