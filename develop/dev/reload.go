package dev

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"runner.example/internal/clock"
	"runner.example/internal/tree"
	"runner.example/runtime"
)

// reloader makes pages of assets reload when a new version of the app is served: it adds a script to their HTML, which waits
// for an event. Each activation has a version, which increases over restarts too. Its methods may be called by any
// goroutine, except inject.
type reloader struct {
	next int64 // the version of the next activation

	mu      sync.Mutex
	served  int64
	changed chan struct{} // closed when served changes
}

func newReloader() *reloader {
	return &reloader{next: clock.System().UnixMilli(), changed: make(chan struct{})}
}

// The paths of the script and of its events.
const (
	reloadPath = runtime.ToolsPath + "reload.js"
	eventsPath = runtime.ToolsPath + "reload"
)

//go:embed reload.js
var reloadScript []byte

// inject adds the script to the HTML files of the bundle that is activated next.
func (r *reloader) inject(b *runtime.Bundle) error {
	r.next++
	script := fmt.Appendf(nil, "<script src=\"%s?v=%d\"></script>\n", reloadPath, r.next)
	injected := map[string]*tree.Tree{}
	for dir, t := range b.Assets {
		files := slices.Clone(t.List())
		for i := range files {
			if !isHTML(files[i].Path) {
				continue
			}
			data, err := t.ReadFile(files[i].Path)
			if err != nil {
				return fmt.Errorf("read the assets of %s: %w", dir, err)
			}
			data = append(data, script...)
			files[i].Size, files[i].SHA256 = int64(len(data)), sha256.Sum256(data)
		}
		with, err := tree.New(files, func(f tree.File) ([]byte, error) {
			data, err := t.ReadFile(f.Path)
			if err == nil && isHTML(f.Path) {
				data = append(data, script...)
			}
			return data, err
		})
		if err != nil { // the script makes a file too large
			return err
		}
		injected[dir] = with
	}
	b.Assets = injected
	return nil
}

func isHTML(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".html", ".htm":
		return true
	}
	return false
}

// announce tells the pages that the version of the last call of inject is served.
func (r *reloader) announce() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.served = r.next
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *reloader) current() (served int64, changed chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.served, r.changed
}

// ServeHTTP serves the script and its events.
func (r *reloader) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch req.URL.Path {
	case reloadPath:
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = w.Write(bytes.ReplaceAll(reloadScript, []byte("EVENTS"), []byte(strconv.Quote(eventsPath)))) // the client may be gone
	case eventsPath:
		r.sendEvents(w, req)
	default:
		http.NotFound(w, req)
	}
}

// sendEvents sends the version that is served, and then each later one, until the client disconnects.
func (r *reloader) sendEvents(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for {
		served, changed := r.current()
		if served != 0 {
			_, _ = fmt.Fprintf(w, "retry: 300\ndata: %d\n\n", served) // the client may be gone
		}
		if out.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-req.Context().Done():
			return
		}
	}
}
