package etcdlog_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"runner.example/state/store/etcdlog"
)

func TestWarningsOfEtcdAreLoggedOnceAMinute(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	logged := newRecords()
	core := etcdlog.WarningsTo(slog.New(logged))
	clock := zap.WithClock(fixedClock{&now})
	etcd := zap.New(core, clock)
	next := func(want string) {
		t.Helper()
		if want == "" {
			if len(logged.all) > 0 {
				t.Errorf("it is logged again: %v", <-logged.all)
			}
			return
		}
		if got := logged.wait(t, "etcd warning", ""); strings.TrimSpace(got) != want {
			t.Errorf("got %s", got)
		}
	}
	etcd.Info("the server has a leader")
	etcd.Warn("exceeded recommended request limit")
	etcd.Error("failed to process Raft message", zap.Error(errors.New("cannot process message from removed member")))
	next("")
	etcd.Warn("slow fdatasync", zap.Duration("took", time.Second), zap.String("request", "a row"), zap.Error(errors.New("why")))
	next("text=slow fdatasync, took 1s, error why repeated=0")
	etcd.Named("other").With(zap.String("id", "1")).Error("slow fdatasync")
	next("")
	etcd.Error("clock drift")
	next("text=clock drift repeated=0")
	etcd.Error("failed to process Raft message", zap.Error(errors.New("it is not valid")))
	next("text=failed to process Raft message, error it is not valid repeated=0")
	now = now.Add(time.Minute)
	etcd.Warn("slow fdatasync")
	next("text=slow fdatasync repeated=1")
}

// fixedClock is the time of zap's entries.
type fixedClock struct{ now *time.Time }

func (c fixedClock) Now() time.Time { return *c.now }

func (c fixedClock) NewTicker(time.Duration) *time.Ticker { return nil }

var _ zapcore.Clock = fixedClock{}
