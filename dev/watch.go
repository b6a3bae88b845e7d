package dev

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"runner.example/config"
)

const (
	// quiet is how long files have to be left alone before they are read: editors
	// write in several steps.
	quiet = 15 * time.Millisecond
	// restless is how long one waits for that at most.
	restless = 300 * time.Millisecond
	// lookEvery is how often files are compared without a notice from the system:
	// some file systems give none.
	lookEvery    = time.Second
	lookOftenest = 200 * time.Millisecond // where the system gives none at all
)

// watcher tells which files of an app have changed. What counts is how they differ
// from the last look, so nothing is lost that happens between two of them; notices
// from the system only say when to look. It belongs to one goroutine.
type watcher struct {
	dir    string
	config string // path of the configuration
	notice *fsnotify.Watcher
	// seen is how the files were at the last look, by their names in the app.
	seen map[string]stamp
	// also are files outside of handlers/ that modules are made of.
	also []string
}

// stamp tells one content of a file from another.
type stamp struct {
	size     int64
	modified time.Time
	inode    uint64
}

// typesName is what is generated of the schema for editors.
const typesName = "types/schema.d.ts"

func newWatcher(dir, config string) *watcher {
	w := &watcher{dir: dir, config: config}
	w.notice, _ = fsnotify.NewWatcher() // without one it looks more often
	w.seen = w.look()
	return w
}

func (w *watcher) close() {
	if w.notice != nil {
		_ = w.notice.Close()
	}
}

// next waits until files have changed and then are left alone for a moment. It
// gives their names, and when it knew of the first.
func (w *watcher) next(ctx context.Context) (changed []string, at time.Time, err error) {
	for {
		at = time.Now()
		if now := w.look(); !maps.Equal(now, w.seen) {
			if err := w.settle(ctx); err != nil {
				return nil, at, err
			}
			if changed := w.take(); len(changed) > 0 {
				return changed, at, nil
			}
		}
		if err := w.wait(ctx); err != nil {
			return nil, at, err
		}
	}
}

// take gives the names of the files that have changed since the last look.
func (w *watcher) take() (changed []string) {
	now := w.look()
	for name, s := range now {
		if before, ok := w.seen[name]; !ok || before != s {
			changed = append(changed, name)
		}
	}
	for name := range w.seen {
		if _, ok := now[name]; !ok {
			changed = append(changed, name)
		}
	}
	w.seen = now
	slices.Sort(changed)
	return changed
}

// wait waits for a notice, or until it is time to look without.
func (w *watcher) wait(ctx context.Context) error {
	every, events, failures := lookOftenest, (chan fsnotify.Event)(nil), (chan error)(nil)
	if w.notice != nil {
		every, events, failures = lookEvery, w.notice.Events, w.notice.Errors
	}
	timer := time.NewTimer(every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-events:
	case <-failures: // notices were lost, say
	case <-timer.C:
	}
	return nil
}

// settle waits until there is quiet.
func (w *watcher) settle(ctx context.Context) error {
	var events chan fsnotify.Event
	if w.notice != nil {
		events = w.notice.Events
	}
	end := time.NewTimer(restless)
	defer end.Stop()
	for {
		calm := time.NewTimer(quiet)
		select {
		case <-ctx.Done():
			calm.Stop()
			return ctx.Err()
		case <-events:
			calm.Stop()
		case <-calm.C:
			return nil
		case <-end.C:
			calm.Stop()
			return nil
		}
	}
}

// ours takes a file that this process has written, or removed, as it is now.
func (w *watcher) ours(name string) {
	if s, ok := stampOf(filepath.Join(w.dir, name)); ok {
		w.seen[name] = s
	} else {
		delete(w.seen, name)
	}
}

// look reads how the files are, and asks for notices of their folders.
func (w *watcher) look() map[string]stamp {
	now := map[string]stamp{}
	note := func(name, path string) {
		if s, ok := stampOf(path); ok {
			now[name] = s
		}
	}
	w.ask(w.dir)
	w.ask(filepath.Join(w.dir, "build"))
	w.ask(filepath.Dir(w.config))
	w.ask(filepath.Join(w.dir, "types"))
	note(config.FileName, w.config)
	note(typesName, filepath.Join(w.dir, typesName)) // made by us, and again when it is gone
	for _, pattern := range []string{"*.schema", "build/*.wasm"} {
		found, _ := filepath.Glob(filepath.Join(w.dir, pattern)) // the patterns are sound
		for _, path := range found {
			if name, err := filepath.Rel(w.dir, path); err == nil && !passing(filepath.Base(path)) {
				note(filepath.ToSlash(name), path)
			}
		}
	}
	for _, name := range w.also {
		path := filepath.Join(w.dir, name)
		w.ask(filepath.Dir(path))
		note(name, path)
	}
	note(packages+"/"+installed, filepath.Join(w.dir, packages, installed))
	handlers := filepath.Join(w.dir, "handlers") + string(filepath.Separator) // a link to a folder is one
	_ = filepath.WalkDir(handlers, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(w.dir, path)
		switch {
		case err != nil: // gone meanwhile, or not to be read: the build tells
			return nil
		case name != "handlers" && d.IsDir() && (passing(d.Name()) || made[d.Name()]):
			if d.Name() == packages {
				note(filepath.ToSlash(filepath.Join(name, installed)), filepath.Join(path, installed))
			}
			return filepath.SkipDir
		case d.IsDir():
			w.ask(path)
		case !passing(d.Name()) && !made[d.Name()]:
			note(filepath.ToSlash(name), path)
		}
		return nil
	})
	return now
}

// ask asks for notices of a folder; to ask twice is no harm.
func (w *watcher) ask(dir string) {
	if w.notice != nil {
		_ = w.notice.Add(dir) // what gives no notice is looked at all the same
	}
}

// npm writes the file installed in packages whenever it has changed what is there.
const packages, installed = "node_modules", ".package-lock.json"

// made are files and folders that toolchains write themselves.
var made = map[string]bool{
	packages: true, "target": true, "build": true, "dist": true,
	"Cargo.lock": true, "go.sum": true, "package-lock.json": true,
}

// passing reports a name that editors give to what is there for a moment.
func passing(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".swp") || name == "4913"
}

// stampOf looks at one file; without one there is no stamp.
func stampOf(path string) (stamp, bool) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return stamp{}, false
	}
	s := stamp{size: info.Size(), modified: info.ModTime()}
	if more, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = more.Ino
	}
	return s, true
}

// isFolder reports whether there is a folder at path; an error says why not.
func isFolder(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = errors.New("it is a file")
	}
	return err
}
