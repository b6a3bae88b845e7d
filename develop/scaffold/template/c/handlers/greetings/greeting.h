/* What is said to whom: plain C, which greeting_test.c tries without a server. */
#ifndef GREETING_H
#define GREETING_H

#include <stdbool.h>
#include <string.h>

/* Whether there is somebody of that name. */
static inline bool greeting_possible(const char *name) { return strcmp(name, "nobody") != 0; }

#endif
