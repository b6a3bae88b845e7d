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
	t, _, err := open(&walker{base: base, dir: dir}, private)
	return t, err
}

// OpenPublic is OpenDir for files that have URLs. Entries whose names begin with a dot are omitted, except the directory
// .well-known (RFC 8615); omitted are their paths, sorted. Names that differ only in case are refused, because they are one
// name in the directories of some systems, and so are names that are not printable UTF-8 or have a backslash.
func OpenPublic(base, dir string, private ...string) (t *Tree, omitted []string, err error) {
	return open(&walker{base: base, dir: dir, public: true, names: map[string]string{}}, private)
}

func open(w *walker, private []string) (t *Tree, omitted []string, err error) {
	for _, path := range private {
		if info, err := os.Stat(path); err == nil {
			w.private = append(w.private, info)
		}
	}
	w.run()
	if found := w.wrong.list(); len(found) > 0 {
		return nil, nil, &InvalidError{found}
	}
	slices.Sort(w.omitted)
	t, err = New(w.files, func(f File) ([]byte, error) { return readLocal(w.base, w.dir, f) })
	return t, w.omitted, err
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
	public      bool // as OpenPublic says
	omitted     []string
	names       map[string]string // of paths in lower case to paths, if public
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
			if !w.full && !w.omits(path, entry.Name()) {
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

// wellKnown is the only directory of public files whose name begins with a dot.
const wellKnown = ".well-known"

// omits reports whether an entry of the directory dir is not part of the tree.
func (w *walker) omits(dir, name string) bool {
	if !w.public {
		return name == gitName
	}
	if name[0] != '.' || dir == "" && name == wellKnown {
		return false
	}
	w.omitted = append(w.omitted, join(dir, name))
	return true
}

// checkName returns what is wrong with the name of a public file or directory, or an empty text.
func (w *walker) checkName(path string) string {
	lower := strings.ToLower(path)
	first, taken := w.names[lower]
	switch {
	case Quoted(path) != path:
		return "has a control character, or is not UTF-8: give it another name"
	case strings.Contains(path, `\`):
		return "has a backslash: give it another name"
	case taken:
		return "differs only in the case of letters from " + join(w.dir, first) + ": give one of them another name"
	}
	w.names[lower] = path
	return ""
}

// entry adds an entry of a directory.
func (w *walker) entry(path string, mode fs.FileMode, above []fs.FileInfo) {
	problem := CheckPath(path)
	if problem == "" && w.public {
		problem = w.checkName(path)
	}
	if problem != "" {
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
