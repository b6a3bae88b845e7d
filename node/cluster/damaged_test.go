package cluster_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/node/cluster"
	"runner.example/state/store"
	"runner.example/tests/harness"
)

// A voter whose etcd server cannot run any more says so, and what to do.
func TestAVoterWithoutItsServerIsNotReady(t *testing.T) {
	first := found(t)
	first.stop()
	logs, err := filepath.Glob(filepath.Join(first.data, "cluster", "etcd", "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	if err := os.WriteFile(logs[0], []byte(strings.Repeat("garbage!", 512)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	damaged, err := tryStart(ctx, t, first.data)
	if err != nil {
		t.Fatal(err)
	}
	damaged.waitServer("runner cluster dissolve")
}

// waitServer waits until the node says that its etcd server does not vote, for a reason with a text.
func (m *member) waitServer(says string) {
	m.t.Helper()
	for late := time.After(time.Minute); ; {
		select {
		case cause := <-m.server:
			if cause != nil && cause.Code == fault.NotReady && strings.Contains(cause.Detail, says) {
				return
			}
		case <-late:
			m.t.Fatalf("the node does not say within a minute that its etcd server does not vote: %q", says)
		}
	}
}

// A voter begins without a vote, and says when it has one. It notices when its log is removed.
func TestAVoterSaysWhetherItVotes(t *testing.T) {
	first := found(t)
	for late := time.After(time.Minute); first.node("n1").NotReady != ""; {
		select {
		case <-first.server:
		case <-late:
			t.Fatalf("the only voter does not vote: %+v", first.node("n1"))
		}
	}
	if s := first.status(); s.Voters != 1 || s.Voting != 1 || s.MayFail != 0 {
		t.Errorf("one voter: %+v", s)
	}
	if err := os.RemoveAll(filepath.Join(first.data, "cluster", "etcd")); err != nil {
		t.Fatal(err)
	}
	first.waitServer("the directory with the log was removed")
	if n := first.node("n1"); n.NotReady == "" || n.NotVoting == "" {
		t.Errorf("the node is ready without its log: %+v", n)
	}
}

func TestAVoterThatHasLostTheLogSaysWhatToDo(t *testing.T) {
	first := found(t)
	first.stop()
	if err := os.RemoveAll(filepath.Join(first.data, "cluster", "etcd")); err != nil {
		t.Fatal(err)
	}
	startLogged(t, first.data).wait(t, "is missing, and no other voter has it", "runner cluster dissolve")
}

func TestMissingAndDamagedFilesOfANodeAreNamedWithARemedy(t *testing.T) {
	for file, text := range map[string]string{"node.json": "{}", "ca.pem": "", "cert.pem": "x", "": ""} {
		data := filepath.Join(t.TempDir(), "n1")
		if _, err := cluster.Init(t.Context(), data, cluster.Options{Name: "n1"}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(data, "cluster", file)
		if file == "" {
			path = filepath.Join(data, "cluster", "node.json")
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := cluster.Start(cluster.StartOptions{Data: data, Logger: slog.New(slog.DiscardHandler)})
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "join again") || !strings.Contains(err.Error(), data) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// The pepper of a join that was killed is beside the data directory, until the next join.
func TestAJoinWritesBesideItsDataDirectoryOnly(t *testing.T) {
	first := found(t)
	dir := t.TempDir()
	rest := filepath.Join(dir, ".n2-joining")
	if err := os.MkdirAll(rest, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(rest, "pepper"), []byte("of a join that was killed"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "missing"))
	token := first.invite(cluster.Edge)
	opt := cluster.JoinOptions{Options: cluster.Options{Name: "n2"}, Data: "/proc/n2"}
	if _, err := cluster.Join(t.Context(), token, opt); err == nil {
		t.Error("a data directory in /proc")
	}
	opt.Data = filepath.Join(dir, "n2")
	if _, err := cluster.Join(t.Context(), token, opt); err != nil {
		t.Error(err) // also if the first try has used the invitation
	}
	if _, err := os.Stat(rest); !os.IsNotExist(err) {
		t.Errorf("the pepper of the join stays: %v", err)
	}
	opt.Data += "b"
	if _, err := cluster.Join(t.Context(), secret.New(token.Reveal()), opt); fault.CodeOf(err) != fault.Denied || !strings.Contains(err.Error(), "runner cluster leave") {
		t.Errorf("again: %v", err)
	}
}

// The node need not be replaced: its etcd server has ended because it could not write.
func TestAVoterOnAFullDiskAsksForRoom(t *testing.T) {
	t.Parallel() // it waits for etcd, which cannot stop on a full disk
	first := found(t)
	first.stop()
	dir := filepath.Join(first.data, "cluster", "etcd")
	if err := os.Rename(dir, dir+"-kept"); err != nil {
		t.Fatal(err)
	}
	harness.SmallDisk(t, "tmpfs", dir, 200<<20)
	if err := os.CopyFS(dir, os.DirFS(dir+"-kept")); err != nil {
		t.Fatal(err)
	}
	full := start(t, first.data)
	harness.FillDisk(t, filepath.Join(dir, "filler"))
	ctx, cancel := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			_, _ = full.store.Update(ctx, func(tx *store.Tx) error { return tx.Set([]byte("row"), make([]byte, 1<<20)) })
		}
	})
	full.waitServer("make room on the disk, and restart this node")
	cancel()
	writer.Wait()
}
