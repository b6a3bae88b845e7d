package adminsocket

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxPath is how long the path of a socket may be: sun_path holds 104 bytes, with a zero (unix(4)).
const maxPath = 103

// place is a path to a socket. If that in the directory is too long, it goes through a link, with a short path, to the
// directory.
type place struct{ path string }

func placeOf(dir, name string) (*place, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	if len(path) <= maxPath {
		return &place{path}, nil
	}
	own := fmt.Sprintf("/tmp/runner-%d", os.Geteuid())
	if err := privateDir(own); err != nil {
		return nil, fmt.Errorf("%q is too long for the path of a socket: %w", path, err)
	}
	sum := sha256.Sum256([]byte(dir))
	link := filepath.Join(own, hex.EncodeToString(sum[:8]))
	if err := os.Symlink(dir, link); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if to, err := os.Readlink(link); err != nil || to != dir {
		return nil, fmt.Errorf("%q is not the link to %q that it should be: remove it", link, dir)
	}
	return &place{filepath.Join(link, name)}, nil
}

// privateDir creates a directory of this user alone, or checks that it is one.
func privateDir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	var have unix.Stat_t
	if err := unix.Lstat(path, &have); err != nil {
		return err
	}
	if have.Mode&unix.S_IFMT != unix.S_IFDIR || have.Mode&0o077 != 0 || have.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("%q is not a directory of this user alone: remove it", path)
	}
	return nil
}

func (*place) close() error { return nil }

// beforeBind does nothing: fchmod of a socket fails on macOS. The umask of the process is 0077, and the data directory
// is closed to other users.
func beforeBind(int) error { return nil }

func afterBind(path string) error { return os.Chmod(path, 0o600) }

func peerUser(fd int) (uid uint32, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
