package keystore_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/keystore"
)

func TestClockGoesBack(t *testing.T) {
	w := onDisk(t)
	var log bytes.Buffer
	w.opt.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.reopen()
	op := operator(compile(t, typed))
	short := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
	long := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(30 * day)}))
	w.clock.advance(2 * time.Hour)
	w.bad(short, keystore.KeyExpired)

	// A little back is what time servers do: the clock is believed.
	w.clock.advance(-5 * time.Minute)
	w.bad(short, keystore.KeyExpired)
	w.good(long)
	if log.Len() > 0 {
		t.Errorf("warned of five minutes: %s", log.String())
	}

	// Far back nothing comes to life.
	w.clock.set(noon)
	for range 3 {
		w.bad(short, keystore.KeyExpired)
		w.good(long)
	}
	if key := w.must(w.get(op, short.ID)); key.Status != keystore.Expired {
		t.Errorf("the expired key is %s", key.Status)
	}
	_, err := w.rotate(op, short.ID, 0)
	w.refuses(fault.Conflict, err)
	if got := strings.Count(log.String(), "the clock was set back"); got != 1 {
		t.Errorf("warned %d times:\n%s", got, log.String())
	}
	fresh := w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", ExpiresIn: lasting(time.Hour)}))
	w.good(fresh)

	// Nor after a restart.
	w.reopen()
	w.bad(short, keystore.KeyExpired)
	w.good(long)

	// When the clock has caught up it is believed again, and another fall is told.
	w.clock.set(noon.Add(3 * time.Hour))
	w.good(long)
	log.Reset()
	w.clock.set(noon)
	w.bad(short, keystore.KeyExpired)
	if !strings.Contains(log.String(), "the clock was set back") {
		t.Error("the second fall of the clock is not told")
	}
}

func TestTheClockFileHoldsTheLatestTimeSeen(t *testing.T) {
	w := onDisk(t)
	key := w.must(w.create(operator(compile(t, typed)), keystore.CreateRequest{Scope: "orders_read"}))
	path := filepath.Join(w.opt.Dir, "clock")
	for _, c := range []struct{ now, want time.Duration }{{time.Hour, time.Hour}, {3 * time.Hour, 3 * time.Hour}, {0, 3 * time.Hour}} {
		w.clock.set(noon.Add(c.now))
		w.good(key)
		w.reopen()
		text, err := os.ReadFile(path)
		if want := noon.Add(c.want).Format("2006-01-02T15:04:05.000Z") + "\n"; err != nil || string(text) != want {
			t.Errorf("at %v the file holds %q, want %q", c.now, text, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestADamagedClockFileIsRefusedByName(t *testing.T) {
	w := onDisk(t)
	w.close()
	path := filepath.Join(w.opt.Dir, "clock")
	if err := os.WriteFile(path, []byte("yesterday"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := w.tryOpen()
	if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), path) {
		t.Errorf("opened with %v", err)
	}
}
