// Program confine becomes the runner under what a unit of systemd forbids, as far as that works without systemd.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// The environment has the confinement as JSON, and the path of the runner.
const (
	confinement = "RUNNER_TEST_CONFINED"
	binary      = "RUNNER_TEST_CONFINED_BINARY"
)

// confined is what of a unit is applied without systemd: the filter of system calls, no new privileges, no
// capabilities, the umask, and for root also a read-only file system.
type confined struct {
	Syscalls []string
	Umask    int
	// Writable are the directories that can be written to; nil: all.
	Writable []string
}

func main() {
	runtime.LockOSThread()
	fail := func(what string, err error) {
		if err != nil {
			fmt.Fprintf(os.Stderr, "confine the runner: %s: %v\n", what, err)
			os.Exit(99)
		}
	}
	var c confined
	fail("read "+confinement, json.Unmarshal([]byte(os.Getenv(confinement)), &c))
	unix.Umask(c.Umask)
	if c.Writable != nil {
		fail("make a mount namespace", unix.Unshare(unix.CLONE_NEWNS))
		fail("make mounts private", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		for _, dir := range c.Writable {
			fail("bind "+dir, unix.Mount(dir, dir, "", unix.MS_BIND, ""))
		}
		fail("make / read-only", unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	}
	for capability := 0; capability <= unix.CAP_LAST_CAP; capability++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0); err != nil && os.Geteuid() == 0 && err != unix.EINVAL {
			fail("drop a capability", err)
		}
	}
	table, err := arch.GetInfo("")
	fail("read the table of system calls", err)
	var known []string
	for _, name := range c.Syscalls { // some are of other processors
		if _, ok := table.SyscallNames[name]; ok {
			known = append(known, name)
		}
	}
	slices.Sort(known)
	fail("load the filter", seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true, Flag: seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionErrno, Syscalls: []seccomp.SyscallGroup{{Names: slices.Compact(known), Action: seccomp.ActionAllow}},
		},
	}))
	fail("start the runner", unix.Exec(os.Getenv(binary), append([]string{"runner"}, os.Args[1:]...), os.Environ()))
}
