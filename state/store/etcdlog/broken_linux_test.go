package etcdlog_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"runner.example/state/store/commitlog"
	"runner.example/state/store/etcdlog"
)

// etcd would end the process: but that must still serve reads.
func TestAServerWithADamagedDirectoryEndsAlone(t *testing.T) {
	t.Parallel()
	o := options(t, t.TempDir(), 1)[0]
	if err := os.MkdirAll(filepath.Join(o.Dir, "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "member", "snap"), nil, 0o600); err != nil { // a directory's name
		t.Fatal(err)
	}
	logged := newRecords()
	o.Logger = slog.New(logged)
	s := run(t, o)
	<-s.Stopped()
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "snapshot directory") || isReady(s) {
		t.Errorf("it ended with %v", err)
	}
	logged.wait(t, "etcd server stopped", "snapshot directory")
}

func TestAServerOnAFullDiskEndsAlone(t *testing.T) {
	if os.Getenv("RUNNER_SOAK") == "" || os.Getuid() != 0 {
		t.Skip("in the long form only: it fills a file system that only root can mount")
	}
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=200m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	all := options(t, t.TempDir(), 3)
	all[0].Dir = filepath.Join(dir, "n1")
	var servers []*etcdlog.Server
	var addresses []string
	for _, o := range all {
		servers = append(servers, run(t, o))
		addresses = append(addresses, o.ClientURL)
	}
	for _, s := range servers {
		<-s.Ready()
	}
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 1<<20))
	}
	filler.Close()
	n := open(t, addresses, 0)
	at := 0
	add := func(batch uint64) {
		entry := make([]byte, 1<<20)
		entry[0], entry[1] = byte(batch), byte(batch>>8)
		for !n.append(t.Context(), commitlog.ID{Proposer: 1, Batch: batch}, entry, &at) {
			if t.Context().Err() != nil {
				t.Fatal("an entry was not appended")
			}
		}
	}
	batch := uint64(0)
	for stopped := false; !stopped; {
		batch++
		add(batch)
		select {
		case <-servers[0].Stopped():
			stopped = true
		default:
		}
	}
	if err := servers[0].Err(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the server with the full disk ended with %v", err)
	} else {
		t.Logf("after %d entries: %v", batch, err)
	}
	for range 10 {
		batch++
		add(batch)
	}
}
