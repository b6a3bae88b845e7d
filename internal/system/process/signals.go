package process

import (
	"os"
	"os/signal"
	"syscall"
)

// StopSignals ask the process to stop. On Windows os.Interrupt is Ctrl-C and Ctrl-Break, and SIGTERM that the
// console is closed or the machine shuts down (package os/signal).
var StopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// Terminate is the signal by which another program asks the process to stop.
const Terminate = syscall.SIGTERM

// NotifyReload sends the signals that ask for a reload to c. Where the system has none, c gets nothing.
func NotifyReload(c chan<- os.Signal) {
	if len(reloadSignals) > 0 {
		signal.Notify(c, reloadSignals...)
	}
}
