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
	// debounceTime is how long files must be unchanged before they are read: editors write in
	// several steps.
	debounceTime = 15 * time.Millisecond
	// maxDebounce limits the wait for that.
	maxDebounce = 300 * time.Millisecond
	// pollInterval is the time between comparisons without a notification: some file systems
	// send none.
	pollInterval = time.Second
	// pollIntervalAlone is the same if notifications are not available.
	pollIntervalAlone = 200 * time.Millisecond
)

// watcher finds changed files of an app. It compares all files with the last comparison, so
// it misses no change; notifications of the system only trigger a comparison.
// It belongs to one goroutine.
type watcher struct {
	dir      string
	config   string // path of the configuration
	notifier *fsnotify.Watcher
	// seen has the files of the last comparison, by their names in the app.
	seen map[string]fileVersion
	// also are files outside handlers/ that modules are built from.
	also []string
	// trees are the directories of files that the schema gives modules.
	trees []string
	// inputs: all files of the app are compared, because a build command may read them. dataDir is the path of the data
	// directory, relative to the app.
	inputs  bool
	dataDir string
}

// fileVersion identifies one version of a file.
type fileVersion struct {
	size     int64
	modified time.Time
	id       uint64
}

// typesNames are the files of types that are generated from the schema.
var typesNames = []string{"types/schema.d.ts", "types/runner/schema.pyi"}

// Watch calls do once, and again each time files of the app in dir have changed, until ctx ends. changed has their names.
// It watches the schema, the configuration at the path config, the handlers, the modules and their files, and the files
// and directories also. do may build the app. It returns the schema, or nil if the schema cannot be read. Only one call
// runs at a time.
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
	w.seen = w.scan()
	var changed []string
	for ctx.Err() == nil {
		if s := do(changed); s != nil {
			w.watchTrees(treesOf(s))
		}
		w.acceptBuilt()
		changed, _, _ = w.next(ctx) // its error is that of ctx
	}
	return nil
}

// relative returns a path relative to the directory dir.
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
	w.notifier, _ = fsnotify.NewWatcher() // without it files are compared more often
	w.seen = w.scan()
	return w
}

func (w *watcher) close() {
	if w.notifier != nil {
		_ = w.notifier.Close()
	}
}

// next waits until files have changed, and then until they do not change for a moment. It
// returns their names, and when it noticed the first change.
func (w *watcher) next(ctx context.Context) (changed []string, at time.Time, err error) {
	for notified := false; ; {
		at = clock.Mark()
		if notified || !maps.Equal(w.scan(), w.seen) {
			if err := w.debounce(ctx); err != nil {
				return nil, at, err
			}
			if changed := w.changes(); len(changed) > 0 {
				return changed, at, nil
			}
		}
		if notified, err = w.wait(ctx); err != nil {
			return nil, at, err
		}
	}
}

// changes returns the names of the files that have changed since the last comparison.
func (w *watcher) changes() (changed []string) {
	now := w.scan()
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
	every, events, failures := pollIntervalAlone, (chan fsnotify.Event)(nil), (chan error)(nil)
	if w.notifier != nil {
		every, events, failures = pollInterval, w.notifier.Events, w.notifier.Errors
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

// debounce waits until files do not change for a moment.
func (w *watcher) debounce(ctx context.Context) error {
	var events chan fsnotify.Event
	if w.notifier != nil {
		events = w.notifier.Events
	}
	end := time.NewTimer(maxDebounce)
	defer end.Stop()
	for {
		calm := time.NewTimer(debounceTime)
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

// acceptBuilt makes the present versions of the files that a build writes count as unchanged.
func (w *watcher) acceptBuilt() {
	now := w.scan()
	built := func(name string, _ fileVersion) bool {
		return strings.HasPrefix(name, "build/") || strings.HasPrefix(name, "types/")
	}
	maps.DeleteFunc(w.seen, built)
	for name, s := range now {
		if built(name, s) {
			w.seen[name] = s
		}
	}
}

// accept makes the present version of a file count as unchanged: this process has written or
// deleted it.
func (w *watcher) accept(name string) {
	if s, ok := versionOf(filepath.Join(w.dir, name)); ok {
		w.seen[name] = s
	} else {
		delete(w.seen, name)
	}
}

// scan returns the versions of all files, and subscribes to notifications of their
// directories.
func (w *watcher) scan() map[string]fileVersion {
	now := map[string]fileVersion{}
	note := func(name, path string) {
		if s, ok := versionOf(path); ok {
			now[name] = s
		}
	}
	w.subscribe(w.dir)
	w.subscribe(filepath.Join(w.dir, "build"))
	w.subscribe(filepath.Dir(w.config))
	note(config.FileName, w.config)
	note(typesConfig, filepath.Join(w.dir, typesConfig))
	for _, name := range typesNames { // generated here, and again when they are deleted
		path := filepath.Join(w.dir, name)
		w.subscribe(filepath.Dir(path))
		note(name, path)
	}
	for _, pattern := range []string{"*.schema", "build/*.wasm", "build/*.debug"} {
		found, _ := filepath.Glob(filepath.Join(w.dir, pattern)) // the patterns are valid
		for _, path := range found {
			if name, err := filepath.Rel(w.dir, path); err == nil && !isTemporary(filepath.Base(path)) {
				note(filepath.ToSlash(name), path)
			}
		}
	}
	for _, name := range w.also {
		path := filepath.Join(w.dir, name)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			w.scanTree(name, note)
			continue
		}
		w.subscribe(filepath.Dir(path))
		note(name, path)
	}
	for _, dir := range w.trees {
		w.scanTree(dir, note)
	}
	if w.inputs {
		w.scanInputs(note)
	}
	note(packages+"/"+installed, filepath.Join(w.dir, packages, installed))
	handlers := filepath.Join(w.dir, "handlers") + string(filepath.Separator) // also follows a link to a directory
	_ = filepath.WalkDir(handlers, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(w.dir, path)
		switch {
		case err != nil: // deleted meanwhile or unreadable: the build reports it
			return nil
		case name != "handlers" && d.IsDir() && (isTemporary(d.Name()) || toolchain.IsWritten(d.Name())):
			if d.Name() == packages {
				note(filepath.ToSlash(filepath.Join(name, installed)), filepath.Join(path, installed))
			}
			return filepath.SkipDir
		case d.IsDir():
			w.subscribe(path)
		case !isTemporary(d.Name()) && !toolchain.IsWritten(d.Name()):
			note(filepath.ToSlash(name), path)
		}
		return nil
	})
	return now
}

// snapshots is the directory that a run of tests writes, beside the tests.
const snapshots = "__snapshots__"

// scanTree notes all files below dir, also those that cannot be part of a release.
func (w *watcher) scanTree(dir string, note func(name, path string)) {
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
			w.subscribe(path)
			return nil
		}
		if files++; files > tree.MaxFiles { // the reload refuses the tree
			return filepath.SkipAll
		}
		if name, err := filepath.Rel(w.dir, path); err == nil {
			note(filepath.ToSlash(name), path)
		}
		return nil
	})
}

// watchTrees sets the directories of modules' files and of assets. The files of a new directory count as unchanged,
// because they are about to be read.
func (w *watcher) watchTrees(dirs []string) {
	before := w.trees
	w.trees = dirs
	for _, dir := range before {
		if !slices.Contains(dirs, dir) {
			maps.DeleteFunc(w.seen, func(name string, _ fileVersion) bool { return strings.HasPrefix(name, dir+"/") })
		}
	}
	for _, dir := range dirs {
		if !slices.Contains(before, dir) {
			w.scanTree(dir, func(name, _ string) { w.accept(name) })
		}
	}
}

// watchInputs sets whether all files of the app that pass isInput are compared. They count as unchanged.
func (w *watcher) watchInputs(all bool, dataDir string) {
	w.inputs, w.dataDir = all, ""
	if name, err := relative(w.dir, dataDir); err == nil {
		w.dataDir = filepath.ToSlash(name)
	}
	if all {
		w.scanInputs(func(name, _ string) { w.accept(name) })
	}
}

// scanInputs notes the files that a build command may read.
func (w *watcher) scanInputs(note func(name, path string)) {
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
			w.subscribe(path)
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

// isInput reports whether a build command may read a file or a directory. It excludes sources of handlers, the schema,
// data, files that the runner serves, and files that a package manager writes.
func (w *watcher) isInput(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	for part := range strings.SplitSeq(name, "/") {
		if isTemporary(part) || part == packages {
			return false
		}
	}
	return !slices.Contains(notInputs, top) && !strings.HasSuffix(top, ".schema") &&
		name != w.dataDir && !strings.HasPrefix(name, w.dataDir+"/") && !w.inTree(name) && !slices.Contains(w.trees, name)
}

// inTree reports whether a file is in a directory of watchTrees.
func (w *watcher) inTree(name string) bool {
	return slices.ContainsFunc(w.trees, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
}

// subscribe subscribes to notifications of a directory; it may be called again.
func (w *watcher) subscribe(dir string) {
	if w.notifier != nil {
		_ = w.notifier.Add(dir) // files without notifications are compared too
	}
}

// npm writes the file installed in packages after every change.
const packages, installed = "node_modules", ".package-lock.json"

// isTemporary reports whether an editor gives this name to temporary files.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".swp") || name == "4913"
}

// versionOf returns the version of a file, and whether it exists.
func versionOf(path string) (fileVersion, bool) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return fileVersion{}, false
	}
	s := fileVersion{size: info.Size(), modified: info.ModTime(), id: disk.ID(info)}
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
