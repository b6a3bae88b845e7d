//go:build !linux

package harness

import (
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"
)

// Tests of servers run on Linux. What follows lets them be compiled elsewhere, where those that need it are skipped.

func skip(t testing.TB) {
	t.Helper()
	t.Skip("this test needs Linux")
}

// NamedPipe skips the test.
func NamedPipe(t testing.TB, _ string) { skip(t) }

// Clocks of CPU time, for CPUTime.
const (
	ThisProcess = iota
	ThisThread
)

// CPUTime skips the test.
func CPUTime(t testing.TB, _ int32) time.Duration { skip(t); return 0 }

// ClockOf is the clock of another process.
func ClockOf(int) int32 { return 0 }

// ReceiveBuffer changes nothing.
func ReceiveBuffer(int) func(string, string, syscall.RawConn) error { return nil }

// SendBuffer changes nothing.
func SendBuffer(int) func(string, string, syscall.RawConn) error { return nil }

// Pause skips the test.
func Pause(t testing.TB, _ *os.Process) { skip(t) }

// Resume does nothing.
func Resume(*os.Process) error { return nil }

// KillProcess kills a process by its id, and reports whether there was one.
func KillProcess(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Kill() == nil
}

// KillGroup does nothing.
func KillGroup(int) {}

// InterruptGroup skips the test.
func InterruptGroup(t testing.TB, _ int) { skip(t) }

// InOwnGroup does nothing.
func InOwnGroup() *syscall.SysProcAttr { return nil }

// LimitOpenFiles skips the test.
func LimitOpenFiles(t testing.TB, _ int, _ uint64) { skip(t) }

func peakMemory(*os.ProcessState) int { return 0 }

// SmallDisk skips the test.
func SmallDisk(t testing.TB, _, _ string, _ int64) { skip(t) }

// Remount skips the test.
func Remount(t testing.TB, _, _ string) { skip(t) }

// FillDisk skips the test.
func FillDisk(t testing.TB, _ string) { skip(t) }

// Network is a network of machines.
type Network struct{}

// NewNetwork skips the test.
func NewNetwork(t testing.TB, _ int) *Network { skip(t); return nil }

// Namespace is the name of the namespace of a machine.
func (*Network) Namespace(int) string { return "" }

// Address is the IP address of a machine.
func (*Network) Address(int) string { return "" }

// PublicService does nothing.
func (*Network) PublicService(int, string, http.HandlerFunc) {}

// Cut does nothing.
func (*Network) Cut(int) {}

// Connect does nothing.
func (*Network) Connect(int) {}

// CutSending does nothing.
func (*Network) CutSending(int) {}

func clientIn(string) *http.Client { return Client }

// ForgetfulDisk is a directory whose file system forgets what was not synced.
type ForgetfulDisk struct{ Dir string }

// NewForgetfulDisk skips the test.
func NewForgetfulDisk(t testing.TB) *ForgetfulDisk { skip(t); return nil }

// Mount does nothing.
func (*ForgetfulDisk) Mount(uint64) {}

// Cut does nothing.
func (*ForgetfulDisk) Cut() {}

// Sync does nothing.
func (*ForgetfulDisk) Sync() {}

// Steps are the system calls of a server.
type Steps struct{}

// FollowSteps skips the test.
func (s *Server) FollowSteps(string, int) *Steps { skip(s.T); return nil }

// Wait returns nothing.
func (*Steps) Wait() []string { return nil }

// Terminal skips the test.
func Terminal(t testing.TB) (ours, theirs *os.File) { skip(t); return nil, nil }
