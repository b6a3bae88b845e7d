package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"runner.example/develop/toolchain"
	"runner.example/develop/toolchain/python"
	"runner.example/internal/clock"
	"runner.example/internal/console"
	"runner.example/internal/system/disk"
	"runner.example/internal/tree"
	"runner.example/node/config"
	"runner.example/schema"
)

const (
	// quiet is how long files must be unchanged before they are read: editors write in
	// several steps.
	quiet = 15 * time.Millisecond
	// restless is the limit of that wait.
	restless = 300 * time.Millisecond
	// lookEvery is the interval of comparisons without a notification: some file systems
	// send none.
	lookEvery    = time.Second
	lookOftenest = 200 * time.Millisecond // if the system sends none at all
)

// watcher finds the files of an app that have changed. It compares files with the last
// comparison, so no change is lost; notifications of the system only trigger a comparison.
// It belongs to one goroutine.
type watcher struct {
	dir    string
	config string // path of the configuration
	notice *fsnotify.Watcher
	// seen has the files of the last comparison, by their names in the app.
	seen map[string]stamp
	// also are files outside handlers/ that modules are built from.
	also []string
	// trees are the directories of files that the schema gives modules.
	trees []string
	// inputs means that all files of the app are compared, because a build command may read them. dataDir is the data
	// directory, as a name in the app.
	inputs  bool
	dataDir string
}

// stamp identifies one version of a file.
type stamp struct {
	size     int64
	modified time.Time
	id       uint64
}

// typesNames are the files of types that are generated from the schema.
var typesNames = []string{"types/schema.d.ts", "types/runner/schema.pyi"}

// Watch calls do, and again whenever files of the app in dir have changed, until ctx ends: with their names, none at first.
// Besides the schema, the configuration at the path config, the handlers and the modules, these are the files and the
// directories also, and the files that the schema gives modules. do may build the app; it returns the schema, or nil for
// the one before. Only one call runs at a time.
func Watch(ctx context.Context, dir, config string, also []string, do func(changed []string) *schema.Schema) error {
	if err := checkDirectory(dir); err != nil {
		return err
	}
	w := newWatcher(dir, config)
	defer w.close()
	for _, path := range also {
		name, err := relative(dir, path)
		if err != nil {
			return err
		}
		w.also = append(w.also, name)
	}
	w.seen = w.look()
	var changed []string
	for ctx.Err() == nil {
		if s := do(changed); s != nil {
			w.watchTrees(treesOf(s))
		}
		w.tookBuilt()
		changed, _, _ = w.next(ctx) // its error is that of ctx
	}
	return nil
}

// relative returns a path as the watcher has it: from the directory dir.
func relative(dir, path string) (string, error) {
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

// typesConfig is the configuration of the type checker, which the build reads too.
const typesConfig = "tsconfig.json"

func newWatcher(dir, config string) *watcher {
	w := &watcher{dir: dir, config: config}
	w.notice, _ = fsnotify.NewWatcher() // without it files are compared more often
	w.seen = w.look()
	return w
}

func (w *watcher) close() {
	if w.notice != nil {
		_ = w.notice.Close()
	}
}

// next waits until files have changed and are unchanged for a moment. It returns their
// names, and when it noticed the first one.
func (w *watcher) next(ctx context.Context) (changed []string, at time.Time, err error) {
	for notified := false; ; {
		at = clock.Mark()
		if notified || !maps.Equal(w.look(), w.seen) {
			if err := w.settle(ctx); err != nil {
				return nil, at, err
			}
			if changed := w.take(); len(changed) > 0 {
				return changed, at, nil
			}
		}
		if notified, err = w.wait(ctx); err != nil {
			return nil, at, err
		}
	}
}

// take returns the names of the files that have changed since the last comparison.
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

// wait waits for a notification, or for the next comparison.
func (w *watcher) wait(ctx context.Context) (notified bool, err error) {
	every, events, failures := lookOftenest, (chan fsnotify.Event)(nil), (chan error)(nil)
	if w.notice != nil {
		every, events, failures = lookEvery, w.notice.Events, w.notice.Errors
	}
	timer := time.NewTimer(every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-events:
		return true, nil
	case <-failures: // for example, lost notifications
	case <-timer.C:
	}
	return false, nil
}

// settle waits until files are unchanged for a moment.
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

// tookBuilt records the present versions of what a build writes.
func (w *watcher) tookBuilt() {
	now := w.look()
	built := func(name string, _ stamp) bool {
		return strings.HasPrefix(name, "build/") || strings.HasPrefix(name, "types/")
	}
	maps.DeleteFunc(w.seen, built)
	for name, s := range now {
		if built(name, s) {
			w.seen[name] = s
		}
	}
}

// ours records the present version of a file that this process has written or deleted.
func (w *watcher) ours(name string) {
	if s, ok := stampOf(filepath.Join(w.dir, name)); ok {
		w.seen[name] = s
	} else {
		delete(w.seen, name)
	}
}

// look reads the versions of all files, and subscribes to notifications of their
// directories.
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
	note(config.FileName, w.config)
	note(typesConfig, filepath.Join(w.dir, typesConfig))
	for _, name := range typesNames { // generated here, and again when they are deleted
		path := filepath.Join(w.dir, name)
		w.ask(filepath.Dir(path))
		note(name, path)
	}
	for _, pattern := range []string{"*.schema", "build/*.wasm", "build/*.debug"} {
		found, _ := filepath.Glob(filepath.Join(w.dir, pattern)) // the patterns are valid
		for _, path := range found {
			if name, err := filepath.Rel(w.dir, path); err == nil && !passing(filepath.Base(path)) {
				note(filepath.ToSlash(name), path)
			}
		}
	}
	for _, name := range w.also {
		path := filepath.Join(w.dir, name)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			w.lookInto(name, note)
			continue
		}
		w.ask(filepath.Dir(path))
		note(name, path)
	}
	for _, dir := range w.trees {
		w.lookInto(dir, note)
	}
	if w.inputs {
		w.lookForInputs(note)
	}
	note(packages+"/"+installed, filepath.Join(w.dir, packages, installed))
	handlers := filepath.Join(w.dir, "handlers") + string(filepath.Separator) // also follows a link to a directory
	_ = filepath.WalkDir(handlers, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(w.dir, path)
		switch {
		case err != nil: // deleted meanwhile or unreadable: the build reports it
			return nil
		case name != "handlers" && d.IsDir() && (passing(d.Name()) || toolchain.IsWritten(d.Name())):
			if d.Name() == packages {
				note(filepath.ToSlash(filepath.Join(name, installed)), filepath.Join(path, installed))
			}
			return filepath.SkipDir
		case d.IsDir():
			w.ask(path)
		case !passing(d.Name()) && !toolchain.IsWritten(d.Name()):
			note(filepath.ToSlash(name), path)
		}
		return nil
	})
	return now
}

// snapshots is the directory that a run of tests writes, beside the tests.
const snapshots = "__snapshots__"

// lookInto notes all files of the tree dir, also those that are not valid in a tree.
func (w *watcher) lookInto(dir string, note func(name, path string)) {
	files := 0
	root := filepath.Join(w.dir, filepath.FromSlash(dir)) + string(filepath.Separator)
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // deleted meanwhile or unreadable: the reload reports it
			return nil
		case d.Name() == ".git" || d.Name() == snapshots:
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			w.ask(path)
			return nil
		}
		if files++; files > tree.MaxFiles { // it is refused
			return filepath.SkipAll
		}
		if name, err := filepath.Rel(w.dir, path); err == nil {
			note(filepath.ToSlash(name), path)
		}
		return nil
	})
}

// watchTrees sets the directories of files of modules. Files of a new one count as unchanged since now: they are about to
// be read.
func (w *watcher) watchTrees(dirs []string) {
	before := w.trees
	w.trees = dirs
	for _, dir := range before {
		if !slices.Contains(dirs, dir) {
			maps.DeleteFunc(w.seen, func(name string, _ stamp) bool { return strings.HasPrefix(name, dir+"/") })
		}
	}
	for _, dir := range dirs {
		if !slices.Contains(before, dir) {
			w.lookInto(dir, func(name, _ string) { w.ours(name) })
		}
	}
}

// watchInputs sets whether all files of the app are compared, except those that isInput excludes. They count as unchanged
// since now.
func (w *watcher) watchInputs(all bool, dataDir string) {
	w.inputs, w.dataDir = all, ""
	if name, err := relative(w.dir, dataDir); err == nil {
		w.dataDir = filepath.ToSlash(name)
	}
	if all {
		w.lookForInputs(func(name, _ string) { w.ours(name) })
	}
}

// lookForInputs notes the files that a build command may read.
func (w *watcher) lookForInputs(note func(name, path string)) {
	files := 0
	root := w.dir + string(filepath.Separator)
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(w.dir, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil: // deleted meanwhile or unreadable: the command reports it
			return nil
		case name != "." && !w.isInput(name):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			w.ask(path)
			return nil
		}
		if files++; files > tree.MaxFiles {
			return filepath.SkipAll
		}
		note(name, path)
		return nil
	})
}

// notInputs are names in the app directory that are read or written by the runner itself.
var notInputs = []string{"handlers", "build", "types", TestsDir, python.PackagesDir, config.FileName}

// isInput reports whether a file or a directory may be read by a build command. Sources of handlers, the schema, data, and
// what the runner serves or a package manager writes are not.
func (w *watcher) isInput(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	for part := range strings.SplitSeq(name, "/") {
		if passing(part) || part == packages {
			return false
		}
	}
	return !slices.Contains(notInputs, top) && !strings.HasSuffix(top, ".schema") &&
		name != w.dataDir && !strings.HasPrefix(name, w.dataDir+"/") && !w.inTree(name) && !slices.Contains(w.trees, name)
}

// inTree reports whether a file is one of a module, and not a source.
func (w *watcher) inTree(name string) bool {
	return slices.ContainsFunc(w.trees, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
}

// ask subscribes to notifications of a directory; it may be called again.
func (w *watcher) ask(dir string) {
	if w.notice != nil {
		_ = w.notice.Add(dir) // files without notifications are compared too
	}
}

// npm writes the file installed in packages after every change.
const packages, installed = "node_modules", ".package-lock.json"

// passing reports whether a name is that of an editor's temporary file.
func passing(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".swp") || name == "4913"
}

// stampOf returns the version of a file, and whether it exists.
func stampOf(path string) (stamp, bool) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return stamp{}, false
	}
	s := stamp{size: info.Size(), modified: info.ModTime(), id: disk.ID(info)}
	return s, true
}

// checkDirectory returns an error if path is not a directory.
func checkDirectory(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	if err == nil {
		return nil
	}
	return &console.Failure{
		Status: console.StatusInvalid, Err: fmt.Errorf("open app directory %q: %w", path, err),
		Hint: "name the app directory after the command",
	}
}
