package server

import (
	"cmp"
	"context"
	"encoding/json"

	"runner.example/hostabi/recording"
	"runner.example/internal/fault"
	"runner.example/internal/wasm"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/runtime"
)

func (l *Local) listRecorded(_ context.Context, _ keystore.Authority, args admin.ListRecorded) ([]admin.RecordedRun, error) {
	if args.Limit < 0 || args.Limit > admin.MaxRecords {
		return nil, fault.New(fault.Invalid, "limit must be from 1 to %d", admin.MaxRecords)
	}
	all, err := l.Recorded.List()
	if err != nil {
		return nil, err
	}
	runs := []admin.RecordedRun{}
	for _, r := range all {
		if args.Failures && !r.Outcome.Failed {
			continue
		}
		if len(runs) == cmp.Or(args.Limit, admin.DefaultRecords) {
			break
		}
		run := admin.RecordedRun{
			ID: r.ID, Time: r.Time, Kind: r.Kind, Method: string(r.Request.Method), Route: r.Request.Route, Handler: r.Handler,
			Release: r.Release, Runs: r.Runs, Calls: r.Calls(), Failed: r.Outcome.Failed, Status: r.Outcome.Status, Code: r.Outcome.Code,
		}
		if r.Outcome.Failure != "" {
			run.Failure = r.Outcome.Describe()
		}
		runs = append(runs, run)
	}
	return runs, nil
}

func (l *Local) showRecorded(_ context.Context, _ keystore.Authority, args admin.RecordedID) (json.RawMessage, error) {
	r, err := l.Recorded.Get(args.ID)
	if err != nil {
		return nil, err
	}
	return json.Marshal(r)
}

func (l *Local) exportRecorded(_ context.Context, _ keystore.Authority, args admin.RecordedID) (json.RawMessage, error) {
	r, err := l.Recorded.Get(args.ID)
	if err != nil {
		return nil, err
	}
	r.Note = exportNote
	return json.MarshalIndent(r, "", "  ")
}

// exportNote is in each exported recording.
const exportNote = "The names in ‹› stand for secrets and credentials. A replay reads the secrets of its own node: what the " +
	"recorded run signed or checked with one is the same only where the secret has the same value. All else is as it was, " +
	"personal data too."

func (l *Local) deleteRecorded(_ context.Context, _ keystore.Authority, args admin.DeleteRecorded) (done admin.DeletedRecorded, err error) {
	if args.All == (len(args.IDs) > 0) {
		return done, fault.New(fault.Invalid, "name the ids of recordings, or all")
	}
	done.Count, err = l.Recorded.Delete(args.IDs...)
	return done, err
}

func (l *Local) replay(ctx context.Context, _ keystore.Authority, args admin.Replay) (json.RawMessage, error) {
	if l.Runtime == nil || l.Bundle == nil {
		return nil, fault.New(fault.Unavailable, "this node runs no handlers")
	}
	if n := len(args.Module); n > wasm.DefaultLimits().ModuleBytes {
		return nil, fault.New(fault.TooLarge, "the module has %d bytes, and the limit is %d", n, wasm.DefaultLimits().ModuleBytes)
	}
	rec := new(recording.Recording)
	var err error
	if args.Recording != nil {
		if err := json.Unmarshal(args.Recording, rec); err != nil {
			return nil, fault.New(fault.Invalid, "the file is not an exported recording: %v", err)
		}
		if rec.Format == 0 {
			return nil, fault.New(fault.Invalid, "the file is not an exported recording: it has no format")
		}
	} else if rec, err = l.Recorded.Get(args.ID); err != nil {
		return nil, err
	}
	bundle, err := l.Bundle(ctx, rec.Release)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, fault.New(fault.NotFound, "the release %s of the recording is not on this node any more", rec.Release).
			WithHint("[release] keep in runner.toml says how many releases are kept")
	}
	if err != nil {
		return nil, allFaults(err)
	}
	opt := runtime.ReplayOptions{Bundle: bundle, Against: runtime.Against(args.Against)}
	if len(args.Module) > 0 {
		opt.Module = args.Module
	}
	done, err := l.Runtime.Replay(ctx, rec, opt)
	if err != nil {
		return nil, allFaults(err)
	}
	return json.Marshal(done)
}
