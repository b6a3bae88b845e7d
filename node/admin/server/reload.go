package server

import (
	"context"
	"errors"
	"strings"

	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
)

func (l *Local) reload(ctx context.Context, _ keystore.Authority, _ struct{}) (admin.Reloaded, error) {
	if l.Reload == nil {
		return admin.Reloaded{}, fault.New(fault.Unavailable, "this server cannot be reloaded: runner dev reloads by itself")
	}
	done, err := l.Reload(ctx)
	if err != nil {
		return admin.Reloaded{}, notActivated(err, "reload failed; previous release kept: ")
	}
	return *done, nil
}

// notActivated returns err as one fault with the code NotActivated, which what introduces. It has the diagnostics of all
// parts of err. An error with another cause than the app, its settings or its rows is returned as it is.
func notActivated(err error, what string) error {
	if err == nil {
		return nil
	}
	all := &console.Problems{}
	var texts []string
	for _, part := range console.Parts(err) {
		problems, isList := errors.AsType[*console.Problems](part)
		_, isFailure := errors.AsType[*console.Failure](part)
		text := part.Error()
		switch {
		case isList:
			shown := problems.Excerpt()
			all.List.Append(shown.Findings)
			all.Total += shown.Total
			text = problems.What
		case !isFailure && fault.Of(part).Code != fault.Invalid:
			return err
		}
		texts = append(texts, text)
	}
	all.What = what + strings.Join(texts, "; ")
	return fault.Wrap(all, fault.NotActivated, "%s", all.What).WithHint(console.HintOf(err))
}
