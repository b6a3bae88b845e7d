package app

import (
	"runner.example/internal/clock"
	"runner.example/internal/console"
	"runner.example/internal/diag"
)

// PrepareServer completes the configuration for a server: listen replaces the setting if it is
// not empty, the certificates are read, and memory limits that are not set are lowered so that
// they fit into limit bytes. It adds errors to Problems, with file as their place. It returns
// how many of these bytes the Go heap may take, or 0 if there are errors.
func (a *App) PrepareServer(file, listen string, limit int64) (heap int64) {
	bad := a.Problems.HasErrors()
	front, place := &a.Config.Runtime.Front, diag.Span{File: file}
	if listen != "" {
		front.Listen = listen
	}
	for _, err := range a.readCertificates(clock.System()) {
		a.Problems.Errorf("", place, "%s", err)
	}
	if bad {
		return 0 // settings with an error have their defaults
	}
	heap, err := a.Config.FitMemory(limit)
	if err != nil {
		a.Problems.Errorf("", place, "%s", err)
	}
	return heap
}

// InvalidConfiguration returns the error that has all Problems, which have an error.
func (a *App) InvalidConfiguration() *console.Problems {
	return &console.Problems{What: "the configuration is invalid: " + console.Counted(a.Problems), List: a.Problems}
}
