package process

import (
	"os"

	"golang.org/x/sys/windows"
)

var reloadSignals []os.Signal

func fileLimit() (files uint64, known bool, err error) { return 0, false, nil }

func openFiles() int { return 0 }

func setUmask(int) int { return 0 }

func endBy(os.Signal) { os.Exit(interrupted) }

// interrupted is the exit status of a process that Ctrl-C ends (STATUS_CONTROL_C_EXIT), as a signed number.
const interrupted = -0x3ffffec6

func keepBrokenPipes() {}

func terminal(f *os.File) bool {
	console, mode := windows.Handle(f.Fd()), uint32(0)
	return windows.GetConsoleMode(console, &mode) == nil &&
		windows.SetConsoleMode(console, mode|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}

func user() string { return "sid:" + SID() }

// SID returns the security identifier of the user that the process runs as.
func SID() string {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		panic("BUG: the process has no user: " + err.Error())
	}
	return user.User.Sid.String()
}
