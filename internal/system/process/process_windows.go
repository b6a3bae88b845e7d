package process

import (
	"os"

	"golang.org/x/sys/windows"
)

var reloadSignals []os.Signal

// FileLimit returns how many files the process may have open. known is false if the system has no such limit.
func FileLimit() (files uint64, known bool, err error) { return 0, false, nil }

// OpenFiles counts the open files of the process; 0: unknown.
func OpenFiles() int { return 0 }

// SetUmask sets the permissions that new files do not get, and returns the previous ones. Windows has none: new
// files get the access list of their directory.
func SetUmask(int) (previous int) { return 0 }

// EndBy does what s does by default: it ends the process. No channel may be notified of s any more.
func EndBy(os.Signal) { os.Exit(interrupted) }

// interrupted is the exit status of a process that Ctrl-C ends (STATUS_CONTROL_C_EXIT), as a signed number.
const interrupted = -0x3ffffec6

// KeepBrokenPipes makes a write to a pipe that nobody reads fail with an error. Windows does nothing else.
func KeepBrokenPipes() {}

// User returns the user that the process runs as, for example "sid:S-1-5-21-…".
func User() string { return "sid:" + SID() }

// SID returns the security identifier of the user that the process runs as.
func SID() string {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		panic("BUG: the process has no user: " + err.Error())
	}
	return user.User.Sid.String()
}
