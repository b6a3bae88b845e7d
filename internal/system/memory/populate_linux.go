package memory

import "golang.org/x/sys/unix"

// populate makes the system allocate all pages at once.
const populate = unix.MAP_POPULATE
