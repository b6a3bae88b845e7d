package runtime

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/runtime/content"
	"runner.example/runtime/front"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// fetchTime limits the time in which the contents of a file that is sent are fetched from another node.
const fetchTime = time.Minute

// sendFile sends the file of an answer.
func (r *Runtime) sendFile(x *front.Exchange, answer *abi.Response) error {
	file := answer.File
	return x.SendContent(answer, &content.Content{
		Size: file.Size, Type: file.Type, ETag: `"` + hex.EncodeToString(file.Digest[:]) + `"`, Modified: file.Modified,
		Open: func() (content.Source, error) {
			ctx, stop := context.WithTimeout(r.serving, fetchTime)
			defer stop()
			blob, err := r.opt.Store.OpenBlob(ctx, file.Digest)
			switch {
			case errors.Is(err, store.ErrNotFound):
				return nil, errNoFile
			case err != nil:
				return nil, fault.Wrap(err, fault.Unavailable, "the contents of the file are not available at the moment")
			}
			return blob, nil
		},
	})
}

// errNoFile does not say whether the row does not exist, has no file, or may not be read.
var errNoFile = &fault.Fault{Code: fault.NotFound}

// serveFile answers a route that sends the file of a row, with the caller's authority. No handler runs.
func (r *Runtime) serveFile(a *activeBundle, s *requestState, x *front.Exchange) error {
	s.startDeadline(r.serving, s.route.timeout)
	var found *schema.File
	err := r.opt.Store.View(s.deadline, func(tx *store.Tx) (err error) {
		found, err = fileOfRow(a, s, x, tx)
		return err
	})
	switch {
	case errors.Is(err, entity.ErrOutdated):
		return err
	case fault.CodeOf(err) == fault.NotFound, fault.CodeOf(err) == fault.Denied, fault.CodeOf(err) == fault.Invalid:
		return errNoFile
	case err != nil:
		return storeFault(err)
	case found == nil:
		return errNoFile
	}
	s.addCookie(a, x, "")
	var answer abi.Response
	hostabi.SendFile(&answer, 200, *found, "", "")
	return r.sendFile(x, &answer)
}

// fileOfRow returns the file of the row that the path names; nil: it has none.
func fileOfRow(a *activeBundle, s *requestState, x *front.Exchange, tx *store.Tx) (found *schema.File, err error) {
	args, err := json.Marshal(map[string]any{
		"from": s.route.File.Entity, "id": string(x.Request.Params[0].Value), "select": []string{s.route.File.Field},
	})
	if err != nil {
		return nil, err
	}
	var rows entity.Access
	rows.Reset(a.host.Entities, tx, &s.caller, a.host.Limits.Rows)
	rows.Context, rows.Observe = s.deadline, a.host.Observe
	rows.SawFile = func(f schema.File, _ entity.FileOwner) { found = &f }
	var out entity.Result
	err = rows.Do("get", args, &out)
	return found, err
}
