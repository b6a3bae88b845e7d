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
}

// reloadAnswer is sent over the socket: a Reloaded, or the problem that prevented the
// reload.
type reloadAnswer struct {
	Reloaded
	Problem     string    `json:"problem,omitempty"`
	Diagnostics []finding `json:"diagnostics,omitempty"`
}

// Reload makes the server read its app and its settings again. It returns when they are in
// force. The error is a *console.Problems if they are not valid; then nothing has changed.
func (c *Client) Reload(ctx context.Context) (Reloaded, error) {
	answer, err := ask[reloadAnswer](ctx, c, "reload", struct{}{})
	if err != nil || answer.Problem == "" {
		return answer.Reloaded, err
	}
	problems := &console.Problems{What: answer.Problem}
	for _, f := range answer.Diagnostics {
		problems.List = append(problems.List, diag.Diagnostic(f))
	}
	return Reloaded{}, problems
}

func (l *Local) reload(ctx context.Context, _ keystore.Authority, _ struct{}) (reloadAnswer, error) {
	if l.Reload == nil {
		return reloadAnswer{}, fault.New(fault.Unavailable, "this server cannot be reloaded: runner dev reloads by itself")
	}
	done, err := l.Reload(ctx)
	if err == nil {
		return reloadAnswer{Reloaded: *done}, nil
	}
	var answer reloadAnswer
	var what []string
	for _, part := range console.Parts(err) {
		problems, isList := errors.AsType[*console.Problems](part)
		_, isFailure := errors.AsType[*console.Failure](part)
		switch {
		case isList:
			for _, d := range problems.List.Sorted() {
				answer.Diagnostics = append(answer.Diagnostics, finding(d))
			}
		case !isFailure && fault.Of(part).Code != fault.Invalid:
			return reloadAnswer{}, err
		}
		what = append(what, part.Error())
	}
	answer.Problem = "reload failed; previous release kept: " + strings.Join(what, "; ")
	return answer, nil
}
