package harness

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// ForgetfulDisk is a directory whose file system forgets what was not synced when the power is cut.
type ForgetfulDisk struct {
	Dir string // where programs see it

	t       testing.TB
	files   string // what a power cut leaves, and what programs see, are in it
	process *exec.Cmd
}

// powercut is the program that mounts such a file system.
var powercut = sync.OnceValues(func() (string, error) {
	unlock, err := lock(filepath.Join(sharedDir(), "powercut.lock")) // tests of packages do not wait for the runner
	if err != nil {
		return "", err
	}
	defer unlock()
	program := filepath.Join(sharedDir(), "powercut")
	return program, Go("build", "-o", program, "./tests/powercut")
})

// NewForgetfulDisk mounts one until the test ends. It skips the test if it may not.
func NewForgetfulDisk(t testing.TB) *ForgetfulDisk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount the file system of this test")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("the file system of this test needs FUSE: %v", err)
	}
	d := &ForgetfulDisk{t: t, Dir: t.TempDir(), files: t.TempDir()}
	if err := os.Mkdir(d.disk(), 0o700); err != nil {
		t.Fatal(err)
	}
	d.Mount(0)
	t.Cleanup(d.Cut)
	return d
}

func (d *ForgetfulDisk) disk() string { return filepath.Join(d.files, "disk") }

// Mount mounts the file system with what the last power cut has left. If keep is not 0, the next power
// cut leaves half of what was not synced, chosen by this seed.
func (d *ForgetfulDisk) Mount(keep uint64) {
	d.t.Helper()
	program, err := powercut()
	if err != nil {
		d.t.Fatal(err)
	}
	d.process = exec.Command(program, "-keep", fmt.Sprint(keep), d.disk(), filepath.Join(d.files, "live"), d.Dir)
	d.process.Stderr = os.Stderr
	out, err := d.process.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.process.Start(); err != nil {
		d.t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "mounted\n" {
		d.t.Fatalf("mount a file system with FUSE: %q, %v", line, err)
	}
}

// Cut cuts the power of the disk. Programs that use it get errors until they have ended.
func (d *ForgetfulDisk) Cut() {
	if d.process == nil {
		return
	}
	_ = d.process.Process.Signal(syscall.SIGTERM)
	if err := d.process.Wait(); err != nil {
		d.t.Errorf("cut the power of a disk: %v", err)
	}
	d.process = nil
	if err := syscall.Unmount(d.Dir, syscall.MNT_DETACH); err != nil {
		d.t.Error(err)
	}
}

// Sync writes all files and their names to the disk.
func (d *ForgetfulDisk) Sync() {
	d.t.Helper()
	err := filepath.WalkDir(d.Dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.IsDir() && !e.Type().IsRegular() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		return file.Sync()
	})
	if err != nil {
		d.t.Fatal(err)
	}
}
