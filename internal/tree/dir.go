package tree

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"runner.example/internal/system/disk"
)

// ErrChanged: the content is not what the tree has. A local directory was changed after OpenDir.
var ErrChanged = errors.New("its bytes have changed")

// gitName is the name of files and directories that a tree of a local directory omits.
const gitName = ".git"

// OpenDir returns the tree of the local directory dir, a path with slashes relative to base. It reads all files once,
// for their digests; a content is read again when it is asked for, and compared.
//
// Symbolic links are followed, and their targets become files of the tree. A link whose target is outside of dir is
// refused, and so are special files, and the directories private with all that is in them: they have data of the
// server. Entries named .git are omitted. The error is an *InvalidError with all problems.
func OpenDir(base, dir string, private ...string) (*Tree, error) {
	w := &walker{base: base, dir: dir}
	for _, path := range private {
		if info, err := os.Stat(path); err == nil {
			w.private = append(w.private, info)
		}
	}
	w.run()
	if found := w.wrong.list(); len(found) > 0 {
		return nil, &InvalidError{found}
	}
	return New(w.files, func(f File) ([]byte, error) { return readLocal(base, dir, f) })
}

// walker collects the files of a directory.
type walker struct {
	base, dir   string
	root        *os.Root
	private     []fs.FileInfo
	files       []File
	directories int
	bytes       int64
	full        bool // a limit is reached
	wrong       problems
	buffer      []byte
}

// openRoot opens the directory dir in base. Links to it may not leave base.
func openRoot(base, dir string) (*os.Root, error) {
	app, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	defer app.Close()
	switch info, err := app.Stat(dir); { // OpenRoot would wait for the writer of a pipe
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, syscall.ENOTDIR
	}
	return app.OpenRoot(dir)
}

func (w *walker) run() {
	if problem := CheckPath(w.dir); problem != "" {
		w.wrong.add("directory %s %s", Quoted(w.dir), problem)
		return
	}
	if strings.Contains(w.dir, `\`) { // a separator on Windows, and a letter elsewhere
		w.wrong.add(`directory %s has a backslash: write a path with /`, Quoted(w.dir))
		return
	}
	root, err := openRoot(w.base, w.dir)
	if err != nil {
		w.wrong.add("directory %s %s", Quoted(w.dir), cause(err))
		return
	}
	defer root.Close()
	if w.insidePrivate() {
		w.wrong.add("directory %s is in the data directory of the server: name another one", Quoted(w.dir))
		return
	}
	w.root, w.buffer = root, make([]byte, 64<<10)
	w.directory("", nil)
	if len(w.files) == 0 && len(w.wrong.all) == 0 {
		w.wrong.add("directory %s has no files: add some, or name another one", Quoted(w.dir))
	}
}

// insidePrivate reports whether the directory is a private one, or in one.
func (w *walker) insidePrivate() bool {
	path, err := filepath.EvalSymlinks(filepath.Join(w.base, filepath.FromSlash(w.dir)))
	if err != nil {
		return false
	}
	if path, err = filepath.Abs(path); err != nil {
		return false
	}
	for ; ; path = filepath.Dir(path) {
		if info, err := os.Stat(path); err == nil && w.isPrivate(info) {
			return true
		}
		if path == filepath.Dir(path) {
			return false
		}
	}
}

func (w *walker) isPrivate(info fs.FileInfo) bool {
	return slices.ContainsFunc(w.private, func(p fs.FileInfo) bool { return os.SameFile(p, info) })
}

// directory adds the files of a directory; path is empty for the root. above are the directories that it is in.
func (w *walker) directory(path string, above []fs.FileInfo) {
	if w.directories++; w.directories > MaxFiles {
		w.refuseMore("there are more than %d directories", MaxFiles)
		return
	}
	name := path
	if name == "" {
		name = "."
	}
	d, err := w.root.Open(name)
	if err != nil {
		w.refuse(path, cause(err))
		return
	}
	defer d.Close()
	info, err := d.Stat()
	switch {
	case err != nil:
		w.refuse(path, cause(err))
		return
	case w.isPrivate(info):
		w.refuse(path, "is the data directory of the server: move it, or name another directory")
		return
	case slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, info) }):
		w.refuse(path, "is a link to a directory that it is in: remove it")
		return
	}
	above = append(slices.Clip(above), info)
	for !w.full {
		entries, err := d.ReadDir(1024)
		for _, entry := range entries {
			if entry.Name() != gitName && !w.full {
				w.entry(join(path, entry.Name()), entry.Type(), above)
			}
		}
		if err != nil {
			if err != io.EOF {
				w.refuse(path, cause(err))
			}
			return
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// entry adds an entry of a directory.
func (w *walker) entry(path string, mode fs.FileMode, above []fs.FileInfo) {
	if problem := CheckPath(path); problem != "" {
		w.refuse(path, problem)
		return
	}
	if mode&fs.ModeSymlink != 0 {
		info, err := w.root.Stat(path)
		if err != nil {
			w.refuse(path, "is a symbolic link "+linkCause(err))
			return
		}
		mode = info.Mode()
	}
	switch {
	case mode.IsDir():
		w.directory(path, above)
	case mode.IsRegular():
		w.file(path)
	default:
		w.refuse(path, "is neither a file nor a directory: remove it")
	}
}

// file adds a file.
func (w *walker) file(path string) {
	if len(w.files) == MaxFiles {
		w.refuseMore("there are more than %d files", MaxFiles)
		return
	}
	f, err := openRegular(w.root, path)
	if err != nil {
		w.refuse(path, cause(err))
		return
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, io.LimitReader(f, MaxFileBytes+1), w.buffer)
	switch {
	case err != nil:
		w.refuse(path, cause(err))
		return
	case n > MaxFileBytes:
		w.refuse(path, fmt.Sprintf("has more than %d bytes, which is the limit of a file", MaxFileBytes))
		return
	}
	if w.bytes += n; w.bytes > MaxBytes {
		w.refuseMore("the files have more than %d bytes together", MaxBytes)
		return
	}
	w.files = append(w.files, File{path, n, [sha256.Size]byte(h.Sum(nil))})
}

func (w *walker) refuse(path, problem string) {
	w.wrong.add("%s %s", Quoted(join(w.dir, path)), problem)
}

// refuseMore reports a limit, and ends the walk.
func (w *walker) refuseMore(format string, args ...any) {
	if !w.full {
		w.full = true
		w.wrong = problems{} // there may be one for each file
		w.wrong.add("directory %s: %s", Quoted(w.dir), fmt.Sprintf(format, args...))
	}
}

// errNotRegular: a file was replaced by something else while the directory was read.
var errNotRegular = errors.New("not a regular file")

// openRegular opens a file. It does not wait for another process, as opening a pipe would.
func openRegular(root *os.Root, path string) (*os.File, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|disk.NoWait, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readLocal reads a file of a directory. The caller compares its digest.
func readLocal(base, dir string, f File) ([]byte, error) {
	root, err := openRoot(base, dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := openRegular(root, f.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var content bytes.Buffer
	content.Grow(int(f.Size) + bytes.MinRead)
	_, err = content.ReadFrom(io.LimitReader(file, f.Size+1))
	return content.Bytes(), err
}

// cause returns why a file or a directory cannot be used, to continue its path.
func cause(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist: create it, or name another directory"
	case errors.Is(err, syscall.ENOTDIR):
		return "is not a directory: name a directory"
	case escapes(err):
		return "is a symbolic link that leaves the directory: copy its target into it"
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return fmt.Sprintf("cannot be read: %v", err)
}

// linkCause returns why a symbolic link cannot be followed.
func linkCause(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "whose target does not exist: remove it"
	case errors.Is(err, syscall.ELOOP):
		return "that leads to itself, or over too many others: remove it"
	case escapes(err):
		return "that leaves the directory: copy its target into it"
	}
	return "that " + cause(err)
}

// escapes reports whether an operation of os.Root was refused because the path leaves it. Its error has no value to
// compare with.
func escapes(err error) bool {
	path, ok := errors.AsType[*fs.PathError](err)
	return ok && strings.Contains(path.Err.Error(), "escapes")
}
