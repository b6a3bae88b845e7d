package backup

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// lowPriority is the nice value of a process that writes a backup.
const lowPriority = 15

// YieldToOthers lowers the priority of this process. A server sends a backup no faster than
// its reader reads. So on a busy machine the backup takes longer, and leaves the processors to
// requests. An error is ignored: the backup is the same.
func YieldToOthers() {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads { // a new thread has the priority of the one that creates it
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, lowPriority)
		}
	}
}
