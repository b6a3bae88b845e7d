package languageserver

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"runner.example/internal/clock"
	"runner.example/internal/diag"
)

// checking is the state of the check of an app.
type checking struct {
	// due is when the app is checked; zero: it has not changed since the last check.
	due time.Time
	// changes counts the changes of the app.
	changes int
	// published are the files that have diagnostics in the editor.
	published map[string]bool
}

func (c *checking) noteChange(delay time.Duration) {
	c.changes++
	c.due = clock.In(delay)
}

// checkChanged checks apps that have changed, until ctx ends. One check runs at a time, and each change puts
// it off.
func (s *Server) checkChanged(ctx context.Context) {
	for {
		a, wait := s.nextDue()
		if a != nil && wait <= 0 {
			s.check(ctx, a)
			continue
		}
		timer := time.NewTimer(max(wait, 0))
		if a == nil {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// nextDue returns the app that is checked next, and the time until then.
func (s *Server) nextDue() (next *app, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.apps {
		if !a.due.IsZero() && (next == nil || a.due.Before(next.due)) {
			next = a
		}
	}
	if next == nil {
		return nil, 0
	}
	return next, time.Until(next.due)
}

// check checks an app and publishes its diagnostics, unless it has changed meanwhile.
func (s *Server) check(ctx context.Context, a *app) {
	s.mu.Lock()
	a.due = time.Time{}
	changes, snap := a.changes, s.snapshotOf(a)
	s.mu.Unlock()
	found := s.found(a.dir, snap)
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	var all []*protocol.PublishDiagnosticsParams
	if changes == a.changes {
		all = s.publications(a, snap, found)
	}
	s.mu.Unlock()
	for _, params := range all {
		_ = s.client.PublishDiagnostics(ctx, params) // the connection has ended; Serve notices
	}
}

// found returns the diagnostics of a snapshot.
func (s *Server) found(dir string, snap *snapshot) (found diag.List) {
	defer func() {
		if cause := recover(); cause != nil {
			s.opt.Log(fmt.Sprintf("check of %s: %v\n%s", dir, cause, debug.Stack()))
			found = nil
		}
	}()
	if len(snap.files) == 0 {
		return nil
	}
	return s.opt.Check(dir, snap.sources()).Excerpt().Findings
}

// publications returns the diagnostics of each file that has some, or had.
func (s *Server) publications(a *app, snap *snapshot, found diag.List) (all []*protocol.PublishDiagnosticsParams) {
	byPath := map[string]*protocol.PublishDiagnosticsParams{}
	of := func(path string) *protocol.PublishDiagnosticsParams {
		p := byPath[path]
		if p == nil {
			p = &protocol.PublishDiagnosticsParams{URI: uri.File(path), Diagnostics: []protocol.Diagnostic{}}
			if version, open := s.versions[path]; open {
				p.Version = protocol.NewOptional(version)
			}
			byPath[path] = p
			all = append(all, p)
		}
		return p
	}
	for _, f := range snap.files {
		of(f.path) // also without diagnostics: the editor may show older ones
	}
	for path := range a.published {
		of(path)
	}
	a.published = map[string]bool{}
	for _, d := range found {
		path := d.Span.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.dir, path)
		}
		a.published[path] = true
		p := of(path)
		p.Diagnostics = append(p.Diagnostics, s.diagnostic(snap, path, d))
	}
	return all
}

// diagnosticsPage describes all codes.
const diagnosticsPage = "https://runner.example/docs/schema/diagnostics.md"

func (s *Server) diagnostic(snap *snapshot, path string, d diag.Diagnostic) protocol.Diagnostic {
	var t *text
	if f := snap.file(path); f != nil {
		t = f.text
	} else if t = s.read(path); t == nil {
		t = newText(path, nil, s.utf8)
	}
	shown := protocol.Diagnostic{
		Range: t.spanned(d.Span), Severity: protocol.DiagnosticSeverityError, Source: protocol.NewOptional("runner"),
		Message: protocol.String(d.Message),
	}
	if d.Severity == diag.Warning {
		shown.Severity = protocol.DiagnosticSeverityWarning
	}
	if d.Code != "" {
		shown.Code = protocol.String(d.Code)
		page, err := uri.Parse(diagnosticsPage + "#:~:text=" + d.Code)
		if err == nil {
			shown.CodeDescription = protocol.CodeDescription{Href: page}
		}
	}
	return shown
}
