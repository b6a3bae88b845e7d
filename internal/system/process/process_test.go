package process_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"runner.example/internal/system/process"
)

func TestTheProcessKnowsItself(t *testing.T) {
	if user := process.User(); !strings.HasPrefix(user, "uid:") && !strings.HasPrefix(user, "sid:S-1-") {
		t.Errorf("the user is %q", user)
	}
	if files, known, err := process.FileLimit(); err != nil || known && files == 0 {
		t.Errorf("%d files, %v, %v", files, known, err)
	}
	before := process.OpenFiles()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if after := process.OpenFiles(); before != 0 && after != before+1 {
		t.Errorf("%d open files, and %d after another was opened", before, after)
	}
	if process.Terminal(f) {
		t.Error("the null device is a terminal")
	}
	_ = f.Close()
}

func TestASignalEndsTheProcess(t *testing.T) {
	if os.Getenv("END_BY_SIGNAL") != "" {
		process.EndBy(process.Terminate)
		select {}
	}
	self := exec.Command(os.Args[0], "-test.run=^TestASignalEndsTheProcess$")
	self.Env = append(os.Environ(), "END_BY_SIGNAL=1")
	err := self.Run()
	if ended, ok := err.(*exec.ExitError); !ok || ended.Success() {
		t.Errorf("the process ended with %v", err)
	}
}
