package etcdlog_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// etcd panics at some contents of its files: the process must still serve reads.
func TestAServerWithADamagedLogFileEndsAlone(t *testing.T) {
	for _, garbage := range []string{strings.Repeat("garbage!", 512), strings.Repeat("\xff", 4096), "\x04\x00\x00\x00\x00\x00\x00\x84" + strings.Repeat("\xff", 4096)} {
		o := options(t, t.TempDir(), 1)[0]
		s := run(t, o)
		<-s.Ready()
		s.Close()
		files, err := filepath.Glob(filepath.Join(o.Dir, "member", "wal", "*.wal"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		if err := os.WriteFile(files[0], []byte(garbage), 0o600); err != nil {
			t.Fatal(err)
		}
		logged := newRecords()
		o.Logger = slog.New(logged)
		s = run(t, o)
		<-s.Stopped()
		if err := s.Err(); err == nil || isReady(s) {
			t.Errorf("it ended with %v", err)
		}
		if text := logged.wait(t, "etcd server stopped", ""); strings.Contains(text, "%!") {
			t.Error(text)
		} else {
			t.Log(text)
		}
	}
}
