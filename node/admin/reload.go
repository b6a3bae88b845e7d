package admin

import (
	"context"
	"errors"
	"strings"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
)

// Reloaded is the result of a reload.
type Reloaded struct {
	// Changed names the files, secrets and settings that have changed.
	Changed []string `json:"changed"`
	// Routes and Modules are the numbers of routes and modules that are served now.
	Routes  int `json:"routes"`
	Modules int `json:"modules"`
	// Release is the id of the release that is served; empty for none.
	Release string `json:"release"`
	// NotServed is the id of the release of the app directory if another release, which was deployed,
	// is served; otherwise empty.
	NotServed string `json:"notServed,omitempty"`
}

// problemAnswer is the part of an answer that has the problem which prevented an activation.
type problemAnswer struct {
	Problem     string    `json:"problem,omitempty"`
	Diagnostics []finding `json:"diagnostics,omitempty"`
}

// problem returns the problem as a *console.Problems, or nil.
func (a problemAnswer) problem() error {
	if a.Problem == "" {
		return nil
	}
	problems := &console.Problems{What: a.Problem}
	for _, f := range a.Diagnostics {
		problems.List = append(problems.List, diag.Diagnostic(f))
	}
	return problems
}

// problemOf returns the answer that has the problem of err, which what introduces. Errors that the
// app does not cause are returned.
func problemOf(err error, what string) (answer problemAnswer, _ error) {
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
				answer.Diagnostics = append(answer.Diagnostics, finding(d))
			}
		case !isFailure && fault.Of(part).Code != fault.Invalid:
			return problemAnswer{}, err
		}
		texts = append(texts, part.Error())
	}
	answer.Problem = what + strings.Join(texts, "; ")
	return answer, nil
}

// reloadAnswer is sent over the socket: a Reloaded, or the problem that prevented the
// reload.
type reloadAnswer struct {
	Reloaded
	problemAnswer
}

// Reload makes the server read its app and its settings again. It returns when they are in
// force. The error is a *console.Problems if they are not valid; then nothing has changed.
func (c *Client) Reload(ctx context.Context) (Reloaded, error) {
	answer, err := ask[reloadAnswer](ctx, c, "reload", struct{}{})
	if err != nil {
		return answer.Reloaded, err
	}
	return answer.Reloaded, answer.problem()
}

func (l *Local) reload(ctx context.Context, _ keystore.Authority, _ struct{}) (answer reloadAnswer, err error) {
	if l.Reload == nil {
		return answer, fault.New(fault.Unavailable, "this server cannot be reloaded: runner dev reloads by itself")
	}
	done, err := l.Reload(ctx)
	if err == nil {
		return reloadAnswer{Reloaded: *done}, nil
	}
	answer.problemAnswer, err = problemOf(err, "reload failed; previous release kept: ")
	return answer, err
}
