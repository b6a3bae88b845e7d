package app

import (
	"runner.example/internal/clock"
	"runner.example/internal/console"
	"runner.example/internal/diag"
)

// PrepareServer completes the configuration for a server: listen replaces the setting if it is
// not empty, the certificates are read, and memory limits that are not set are lowered so that
// they fit into limit bytes. It adds errors to Problems, at the place of a setting or else in file. It returns
// how many of these bytes the Go heap may take, or 0 if there are errors.
func (a *App) PrepareServer(file, listen string, limit int64) (heap int64) {
	bad := a.Problems.HasErrors()
	front := &a.Config.Runtime.Front
	if listen != "" {
		front.Listen = listen
		a.Config.SetByFlag("front", "listen", "--listen")
	}
	a.readCertificates(clock.System(), func(section string, err error) {
		a.Problems.Errorf("", a.certificatePlace(section, file), "%s", err)
	})
	if bad {
		return 0 // settings with an error have their defaults
	}
	heap, err := a.Config.FitMemory(limit)
	if err != nil {
		a.Problems.Errorf("", diag.Span{File: file}, "%s", err)
	}
	return heap
}

// certificatePlace returns the place of a section's tls_cert, or else of its tls_key, or else the file.
func (a *App) certificatePlace(section, file string) diag.Span {
	for _, key := range []string{"tls_cert", "tls_key"} {
		if place, ok := a.Config.Place(section, key); ok {
			return place
		}
	}
	return diag.Span{File: file}
}

// InvalidConfiguration returns the error that has all Problems, which have an error.
func (a *App) InvalidConfiguration() *console.Problems {
	return &console.Problems{What: "the configuration is invalid: " + console.Counted(a.Problems), List: a.Problems}
}
