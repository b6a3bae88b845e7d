package admin

import (
	"context"

	"runner.example/internal/console"
	"runner.example/internal/diag"
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

// ReloadAnswer is a Reloaded as it is sent, or the problem that prevented the
// reload.
type ReloadAnswer struct {
	Reloaded
	ProblemAnswer
}

// Reload makes the server read its app and its settings again. It returns when they are in
// force. The error is a *console.Problems if they are not valid; then nothing has changed.
func (c *Client) Reload(ctx context.Context) (Reloaded, error) {
	answer, err := ask(ctx, c, OpReload, none{})
	if err != nil {
		return answer.Reloaded, err
	}
	return answer.Reloaded, answer.Err()
}

// ProblemAnswer is the part of an answer that has the problem which prevented an activation.
type ProblemAnswer struct {
	Problem     string    `json:"problem,omitempty"`
	Diagnostics []Finding `json:"diagnostics,omitempty"`
}

// Err returns the problem as a *console.Problems, or nil.
func (a ProblemAnswer) Err() error {
	if a.Problem == "" {
		return nil
	}
	problems := &console.Problems{What: a.Problem}
	for _, f := range a.Diagnostics {
		problems.List = append(problems.List, diag.Diagnostic(f))
	}
	return problems
}
