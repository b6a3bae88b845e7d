package recorded_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi/recording"
	"runner.example/internal/fault"
	"runner.example/runtime/recorded"
)

func open(t *testing.T, opt recorded.Options) *recorded.Keeper {
	t.Helper()
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	return recorded.Open(opt)
}

func failure(n int) *recording.Recording {
	return &recording.Recording{Format: recording.Format, ID: fmt.Sprintf("%026d", n), Outcome: recording.Outcome{Failed: true}}
}

// ids returns those of the list.
func ids(t *testing.T, k *recorded.Keeper) (all []string) {
	t.Helper()
	list, err := k.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		all = append(all, strings.TrimLeft(r.ID, "0"))
	}
	return all
}

// keep writes recordings one after another, and returns the open keeper.
func keep(t *testing.T, opt recorded.Options, all ...*recording.Recording) *recorded.Keeper {
	t.Helper()
	for _, r := range all {
		k := open(t, opt)
		k.Keep(r)
		k.Close()
	}
	k := open(t, opt)
	t.Cleanup(k.Close)
	return k
}

func TestTheNewestRecordingsAreKept(t *testing.T) {
	opt := recorded.Options{Dir: filepath.Join(t.TempDir(), "recorded"), Failures: 2}
	sample := failure(9)
	sample.Outcome.Failed = false
	k := keep(t, opt, failure(1), failure(3), sample, failure(2))
	if got := fmt.Sprint(ids(t, k)); got != "[9 3 2]" {
		t.Errorf("kept are %s", got)
	}
	if _, err := k.Get(failure(1).ID); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an old one: %v", err)
	}
	if n, err := k.Delete(failure(3).ID); n != 1 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
	if n, err := k.Delete(failure(3).ID); n != 0 || fault.CodeOf(err) != fault.NotFound {
		t.Errorf("deleted again %d, %v", n, err)
	}
	if n, err := k.Delete(); n != 2 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
}

func TestRecordingsHaveLimitedSpaceAndTime(t *testing.T) {
	opt := recorded.Options{Dir: t.TempDir(), Failures: 100, Size: 3000, Keep: time.Hour}
	var all []*recording.Recording
	for n := range 30 {
		all = append(all, failure(n+1))
	}
	k := keep(t, opt, all...)
	n := len(ids(t, k))
	if n < 3 || n > 29 {
		t.Errorf("%d recordings in 3,000 bytes", n)
	}
	opt.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	later := keep(t, opt, failure(99))
	if got := ids(t, later); len(got) != 0 {
		t.Errorf("kept after their time: %v", got)
	}
}

func TestAFileThatIsDamagedOrOfAnotherKeyIsNotShown(t *testing.T) {
	dir := t.TempDir()
	k := keep(t, recorded.Options{Dir: dir, Failures: 9}, failure(1), failure(2))
	name := filepath.Join(dir, failure(1).ID+".f")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-1]++
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Get(failure(1).ID); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a damaged file: %v", err)
	}
	if got := fmt.Sprint(ids(t, k)); got != "[2]" {
		t.Errorf("listed are %s", got)
	}
	other := keep(t, recorded.Options{Dir: dir, Failures: 9, Key: [32]byte{1}})
	if got := ids(t, other); len(got) != 0 {
		t.Errorf("another key lists %v", got)
	}
}

// What cannot be written is lost, and nobody waits for it.
func TestAKeeperThatCannotWriteLosesRecordings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	k := open(t, recorded.Options{Dir: filepath.Join(file, "recorded"), Failures: 9, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for n := range 1000 {
		k.Keep(failure(n))
	}
	k.Close()
	if !strings.Contains(log.String(), "recording not kept") {
		t.Error(log.String())
	}
}

func TestWithoutSettingsNothingIsRecorded(t *testing.T) {
	k := open(t, recorded.Options{Dir: t.TempDir()})
	defer k.Close()
	if records, sampled := k.Records(); records || sampled {
		t.Error(records, sampled)
	}
	if records, _ := (*recorded.Keeper)(nil).Records(); records {
		t.Error("no keeper records")
	}
}
