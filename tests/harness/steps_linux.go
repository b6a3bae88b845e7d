package harness

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Steps are the system calls with which a server changes the files of a directory, in order. The
// kernel stops the server before each of them (ptrace). Changes of mapped files are not system calls,
// except the one that writes them to the disk.
type Steps struct {
	server *Server
	dir    string
	kill   int
	names  []string
	err    error
	ended  chan struct{}
}

// FollowSteps follows the server until it ends, and kills it before the step with this number, counted
// from 1; 0: before none. Files in dir/cache do not count.
func (s *Server) FollowSteps(dir string, kill int) *Steps {
	s.T.Helper()
	f := &Steps{server: s, dir: dir + "/", kill: kill, ended: make(chan struct{})}
	following := make(chan struct{})
	go func() {
		defer close(f.ended)
		runtime.LockOSThread() // until the goroutine ends: only this thread may trace
		f.err = f.follow(func() { close(following) })
	}()
	select {
	case <-following:
	case <-f.ended:
		s.T.Fatalf("follow the steps of the server: %v", f.err)
	}
	return f
}

// Wait returns the steps when the server has ended.
func (f *Steps) Wait() []string {
	f.server.T.Helper()
	<-f.ended
	<-f.server.Ended
	if f.err != nil {
		f.server.T.Fatalf("follow the steps of the server: %v", f.err)
	}
	return f.names
}

// follow calls ready when all threads are followed, and returns when they have ended.
func (f *Steps) follow(ready func()) error {
	pid := f.server.Cmd.Process.Pid
	starting, err := seizeThreads(pid)
	if err != nil {
		return err
	}
	for {
		var status unix.WaitStatus
		tid, err := unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			return nil
		case err != nil:
			return fmt.Errorf("wait: %w", err)
		}
		if starting[tid] {
			if delete(starting, tid); len(starting) == 0 {
				ready()
				starting = nil
			}
		}
		if !status.Stopped() {
			continue // the thread has ended
		}
		signal := 0
		switch stop := status.StopSignal(); {
		case stop == unix.SIGTRAP|0x80: // PTRACE_O_TRACESYSGOOD
			name, err := f.step(pid, tid)
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
			if name == "" {
				break
			}
			if f.names = append(f.names, name); len(f.names) == f.kill {
				_ = unix.Kill(pid, unix.SIGKILL) // the call is not executed
			}
		case int(status)>>16 == 0: // no event of ptrace
			signal = int(stop)
		}
		if err := unix.PtraceSyscall(tid, signal); err != nil && !errors.Is(err, unix.ESRCH) { // it may be killed
			return fmt.Errorf("continue a thread: %w", err)
		}
	}
}

// seizeThreads begins to trace all threads of a process. Those that it returns will stop.
func seizeThreads(pid int) (map[int]bool, error) {
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	threads := map[int]bool{}
	for added := true; added; { // a thread may start another one before it is traced
		added = false
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			tid, err := strconv.Atoi(e.Name())
			if err != nil {
				return nil, err
			}
			if threads[tid] {
				continue
			}
			err = ptrace(unix.PTRACE_SEIZE, tid, 0, options)
			if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EPERM) && len(threads) > 0 {
				continue // it has ended, or is traced because it was started by a traced one
			}
			if err == nil {
				err = ptrace(unix.PTRACE_INTERRUPT, tid, 0, 0)
			}
			if err != nil {
				return nil, fmt.Errorf("trace thread %d: %w", tid, err)
			}
			threads[tid], added = true, true
		}
	}
	return threads, nil
}

func ptrace(request, tid int, address, data uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), address, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// fileCall is a system call that changes a file: the argument that names it is a descriptor, or a path.
type fileCall struct {
	name     string
	argument int
	isPath   bool
}

var fileCalls = map[uint64]fileCall{
	unix.SYS_WRITE:           {name: "write"},
	unix.SYS_PWRITE64:        {name: "pwrite"},
	unix.SYS_WRITEV:          {name: "writev"},
	unix.SYS_PWRITEV:         {name: "pwritev"},
	unix.SYS_PWRITEV2:        {name: "pwritev2"},
	unix.SYS_SENDFILE:        {name: "sendfile"},
	unix.SYS_SPLICE:          {name: "splice", argument: 2},
	unix.SYS_COPY_FILE_RANGE: {name: "copy_file_range", argument: 2},
	unix.SYS_FTRUNCATE:       {name: "ftruncate"},
	unix.SYS_FALLOCATE:       {name: "fallocate"},
	unix.SYS_FSYNC:           {name: "fsync"},
	unix.SYS_FDATASYNC:       {name: "fdatasync"},
	unix.SYS_SYNC_FILE_RANGE: {name: "sync_file_range"},
	unix.SYS_OPENAT:          {name: "create", argument: 1, isPath: true}, // with O_CREAT
	unix.SYS_RENAMEAT:        {name: "rename", argument: 1, isPath: true},
	unix.SYS_RENAMEAT2:       {name: "rename", argument: 1, isPath: true},
	unix.SYS_LINKAT:          {name: "link", argument: 3, isPath: true},
	unix.SYS_UNLINKAT:        {name: "unlink", argument: 1, isPath: true},
	unix.SYS_MKDIRAT:         {name: "mkdir", argument: 1, isPath: true},
}

// step returns what the system call is that the thread begins, if it is a step.
func (f *Steps) step(pid, tid int) (string, error) {
	// struct ptrace_syscall_info: op, and for a call that begins its number and arguments.
	var info [128]byte
	const entry, number, arguments = 1, 24, 32
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), uintptr(len(info)), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return "", fmt.Errorf("read a system call: %w", errno)
	}
	if info[0] != entry {
		return "", nil
	}
	argument := func(i int) uint64 { return binary.NativeEndian.Uint64(info[arguments+8*i:]) }
	nr := binary.NativeEndian.Uint64(info[number:])
	call, found := fileCalls[nr]
	var path string
	var err error
	switch {
	case nr == unix.SYS_MSYNC:
		return "msync", nil
	case !found || nr == unix.SYS_OPENAT && argument(2)&unix.O_CREAT == 0:
		return "", nil
	case call.isPath:
		path, err = readText(pid, argument(call.argument))
	default:
		path, err = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, int32(argument(call.argument))))
		if errors.Is(err, os.ErrNotExist) { // the descriptor is closed: the call fails
			return "", nil
		}
	}
	if name, ok := strings.CutPrefix(path, f.dir); ok && !strings.HasPrefix(name, "cache/") {
		return call.name + " " + name, err
	}
	return "", err
}

// readText reads a text of another process.
func readText(pid int, address uint64) (string, error) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return "", err
	}
	defer memory.Close()
	text := make([]byte, unix.PathMax)
	n, err := memory.ReadAt(text, int64(address))
	if end := bytes.IndexByte(text[:n], 0); end >= 0 {
		return string(text[:end]), nil
	}
	return "", fmt.Errorf("read a path: %w", errors.Join(err, unix.ENAMETOOLONG))
}
