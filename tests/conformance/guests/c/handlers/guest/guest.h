/* What the files of the guest share. */
#include "runner.h"

/* The items of rows, as a list. */
runner_json *items(const runner_json *rows);
