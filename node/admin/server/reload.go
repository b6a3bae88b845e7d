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

func (l *Local) reload(ctx context.Context, _ keystore.Authority, _ struct{}) (answer admin.ReloadAnswer, err error) {
	if l.Reload == nil {
		return answer, fault.New(fault.Unavailable, "this server cannot be reloaded: runner dev reloads by itself")
	}
	done, err := l.Reload(ctx)
	if err == nil {
		return admin.ReloadAnswer{Reloaded: *done}, nil
	}
	answer.ProblemAnswer, err = problemOf(err, "reload failed; previous release kept: ")
	return answer, err
}

// problemOf returns the answer that has the problem of err, which what introduces. Errors that the
// app does not cause are returned.
func problemOf(err error, what string) (answer admin.ProblemAnswer, _ error) {
	if err == nil {
		return answer, nil
	}
	var texts []string
	for _, part := range console.Parts(err) {
		problems, isList := errors.AsType[*console.Problems](part)
		_, isFailure := errors.AsType[*console.Failure](part)
		switch {
		case isList:
			for _, d := range problems.List.Sorted() {
				answer.Diagnostics = append(answer.Diagnostics, admin.Finding(d))
			}
		case !isFailure && fault.Of(part).Code != fault.Invalid:
			return admin.ProblemAnswer{}, err
		}
		texts = append(texts, part.Error())
	}
	answer.Problem = what + strings.Join(texts, "; ")
	return answer, nil
}
