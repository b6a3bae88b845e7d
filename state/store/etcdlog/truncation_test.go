package etcdlog_test

import (
	"testing"
	"time"

	"runner.example/state/store/etcdlog"
)

func TestATruncationKeepsWhatNodesMayNeed(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	sample := func(minute int, seq, revision uint64) etcdlog.Sample {
		return etcdlog.Sample{Time: start.Add(time.Duration(minute) * time.Minute), Seq: seq, Revision: revision}
	}
	// Each revision is ten times the sequence number.
	all := []etcdlog.Sample{sample(0, 1_000, 10_000), sample(1, 2_000, 20_000), sample(2, 3_000, 30_000), sample(12, 70_000, 700_000)}
	last := func(minute int, seq uint64) []etcdlog.Sample {
		return append(all[:3:3], sample(minute, seq, 10*seq))
	}
	for name, c := range map[string]struct {
		samples []etcdlog.Sample
		synced  []uint64
		want    uint64
	}{
		"nothing is known":            {nil, []uint64{1}, 0},
		"no voter is known":           {all, nil, 0},
		"all voters have all":         {all, []uint64{700_000, 700_000, 700_000}, 30_000},
		"one voter alone":             {all, []uint64{25_000}, 20_000},
		"a minority lags":             {all, []uint64{0, 700_000, 700_000}, 30_000},
		"a majority is not known":     {all, []uint64{0, 0, 700_000}, 0},
		"a majority lags":             {all, []uint64{20_000, 29_999, 700_000}, 20_000},
		"both of two voters count":    {all, []uint64{15_000, 700_000}, 10_000},
		"three of five voters":        {all, []uint64{0, 700_000, 0, 20_000, 700_000}, 20_000},
		"entries are too few":         {last(60, 66_535), []uint64{1 << 40}, 0},
		"as many are kept as must be": {last(60, 66_536), []uint64{1 << 40}, 10_000},
		"entries are too young":       {last(9, 1_000_000), []uint64{1 << 40}, 0},
		"they are as old as must be":  {last(11, 1_000_000), []uint64{1 << 40}, 20_000},
	} {
		if got := etcdlog.Truncatable(c.samples, c.synced); got != c.want {
			t.Errorf("%s: up to %d, want %d", name, got, c.want)
		}
	}
}

// A day of samples, in which the voters once do not answer for hours.
func TestATruncationFollowsTheLog(t *testing.T) {
	var tr etcdlog.Truncation
	start := time.Unix(1_700_000_000, 0)
	const perMinute = 10_000
	deleted := uint64(0)
	for minute := range uint64(24 * 60) {
		now := etcdlog.Sample{Time: start.Add(time.Duration(minute) * time.Minute), Seq: minute * perMinute, Revision: 3 * minute * perMinute}
		away := minute > 100 && minute < 1300
		synced := []uint64{now.Revision, now.Revision, now.Revision}
		if away {
			synced = []uint64{now.Revision, 0, 0}
		}
		upTo := tr.Note(now, synced)
		switch kept := (now.Revision - upTo) / 3; {
		case away && upTo != 0:
			t.Fatalf("minute %d: up to %d although a majority is not known", minute, upTo)
		case upTo > 0 && kept < 10*perMinute:
			t.Fatalf("minute %d: only %d entries are kept", minute, kept)
		case !away && minute > 20 && kept > 13*perMinute:
			t.Fatalf("minute %d: %d entries are kept", minute, kept)
		}
		deleted = max(deleted, upTo)
	}
	if deleted < 3*perMinute*1400 {
		t.Errorf("deleted up to %d", deleted)
	}
	// Nothing comes any more: what is young gets old, and the newest are kept.
	var upTo uint64
	for minute := range uint64(60) {
		upTo = tr.Note(etcdlog.Sample{Time: start.Add(time.Duration(1440+minute) * time.Minute), Seq: 1439 * perMinute, Revision: 3 * 1439 * perMinute}, []uint64{1 << 40})
	}
	if want := uint64(3 * perMinute * (1439 - 7)); upTo != want {
		t.Errorf("in the end up to %d, want %d", upTo, want)
	}
}
