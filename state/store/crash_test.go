package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"runner.example/state/store"
)

const (
	crashDir     = "STORE_TEST_CRASH_DIR"
	crashRound   = "STORE_TEST_CRASH_ROUND"
	crashWriters = 8
	crashRounds  = 6
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		crashChild(dir, os.Getenv(crashRound))
	}
	os.Exit(m.Run())
}

// crashChild writes until it is killed, and prints the name of each operation when it is
// acknowledged. An operation increments a counter, writes its own key and sometimes a value
// of several pieces; all contain the name of the operation.
func crashChild(dir, round string) {
	s, err := store.OpenWindow(store.Options{Dir: dir}, 50)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var out sync.Mutex
	var done sync.WaitGroup
	for w := range crashWriters {
		done.Go(func() {
			for n := 0; ; n++ {
				op := fmt.Sprintf("%s/%d/%d", round, w, n)
				if err := crashOperation(s, w, n, op); err != nil {
					fmt.Println("error", err)
					os.Exit(1)
				}
				out.Lock()
				fmt.Println("ack", op)
				out.Unlock()
			}
		})
	}
	done.Wait()
}

func crashOperation(s *store.Store, w, n int, op string) error {
	counter := []byte("counter/" + strconv.Itoa(w))
	_, err := s.Update(context.Background(), func(tx *store.Tx) error {
		count := 0
		if v := get(tx, string(counter)); v != "<none>" {
			count, _ = strconv.Atoi(v)
		}
		if n%50 == 0 {
			if err := tx.Set([]byte("long"), []byte(strings.Repeat(op+" ", 80_000))); err != nil {
				return err
			}
		}
		if err := tx.Set(counter, strconv.AppendInt(nil, int64(count+1), 10)); err != nil {
			return err
		}
		return tx.Set(fmt.Appendf(nil, "op/%d/%s", w, op), strconv.AppendInt(nil, int64(count+1), 10))
	})
	return err
}

func TestNoAcknowledgedCommitIsLostWhenTheProcessIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	dir := t.TempDir()
	random := newRandom(t)()
	acked := map[string]bool{} // over all rounds
	for round := range crashRounds {
		killAfter := 1 + random.IntN(1500)
		acks := runAndKill(t, dir, round, killAfter)
		for _, op := range acks {
			acked[op] = true
		}
		s, err := store.OpenWindow(store.Options{Dir: dir}, 50)
		if err != nil {
			t.Fatalf("round %d, killed after %d acknowledged: %v", round, len(acks), err)
		}
		checkCrashed(t, s, acked)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("round %d, killed after %d acknowledged", round, len(acks))
		}
	}
	if len(acked) < crashRounds {
		t.Errorf("only %d operations acknowledged", len(acked))
	}
}

// runAndKill starts a child, kills it once it printed killAfter lines, and
// returns the operations that it acknowledged.
func runAndKill(t *testing.T, dir string, round, killAfter int) (acks []string) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashDir+"="+dir, crashRound+"="+strconv.Itoa(round))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // killed; a line cut short acknowledged nothing
		}
		op, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "ack ")
		if !ok {
			t.Errorf("child says %q", line)
			break
		}
		if acks = append(acks, op); len(acks) == killAfter {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = child.Wait() // it was killed
	return acks
}

// checkCrashed checks that all acknowledged operations are in the store, and that each
// operation in it is complete.
func checkCrashed(t *testing.T, s *store.Store, acked map[string]bool) {
	t.Helper()
	err := s.View(t.Context(), func(tx *store.Tx) error {
		there := 0
		for w := range crashWriters {
			counts := map[string]bool{}
			prefix := fmt.Sprintf("op/%d/", w)
			for item, err := range tx.Scan([]byte(prefix), nil, false) {
				if err != nil {
					return err
				}
				counts[string(item.Value)] = true
				if acked[string(item.Key[len(prefix):])] {
					there++
				}
			}
			counter := get(tx, fmt.Sprintf("counter/%d", w))
			if n, _ := strconv.Atoi(counter); n != len(counts) {
				t.Errorf("writer %d: counter is %s, with %d operations", w, counter, len(counts))
			}
			for n := 1; n <= len(counts); n++ {
				if !counts[strconv.Itoa(n)] {
					t.Errorf("writer %d: operation number %d of %d is missing", w, n, len(counts))
				}
			}
		}
		if there != len(acked) {
			t.Errorf("%d of %d acknowledged operations are there", there, len(acked))
		}
		long := get(tx, "long")
		op, _, _ := strings.Cut(long, " ")
		if long != "<none>" && (long != strings.Repeat(op+" ", 80_000) || get(tx, "op/"+strings.Split(op, "/")[1]+"/"+op) == "<none>") {
			t.Errorf("the long value of %q is not whole", op)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
