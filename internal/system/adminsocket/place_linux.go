package adminsocket

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// place is a path to a socket that is short for every directory, since the address of a socket holds 107 bytes. It is
// valid until it is closed.
type place struct {
	path      string
	directory *os.File
}

func placeOf(dir, name string) (*place, error) {
	directory, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return &place{fmt.Sprintf("/proc/self/fd/%d/%s", directory.Fd(), name), directory}, nil
}

func (p *place) close() error { return p.directory.Close() }

// beforeBind sets the mode of the socket: Linux creates its file with it, so it never has another one.
func beforeBind(fd int) error { return unix.Fchmod(fd, 0o600) }

func afterBind(string) error { return nil }

func peerUser(fd int) (uid uint32, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
