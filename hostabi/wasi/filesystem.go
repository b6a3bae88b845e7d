package wasi

import (
	"time"

	"runner.example/hostabi"
	"runner.example/hostabi/files"
	"runner.example/internal/component/canon"
)

// descriptor is an open file or directory. It has no state.
type descriptor struct {
	path []*files.Node // from the root to the file
}

func (*descriptor) kind() string { return "descriptor" }

func (d *descriptor) keep(*run) resource { return d }

func (d *descriptor) node() *files.Node { return d.path[len(d.path)-1] }

// directoryStream has the entries of a directory that were not read.
type directoryStream struct{ rest []*files.Node }

func (*directoryStream) kind() string { return "directory-entry-stream" }

var fileCodes = codes("wasi:filesystem/types", "filesystem-error-code")

func fileError(name string) canon.Case { return fail(canon.Case{Index: fileCodes()[name]}) }

var fileFunctions = map[string]function{
	"[method]descriptor.read-via-stream":     readViaStream,
	"[method]descriptor.write-via-stream":    readOnly,
	"[method]descriptor.append-via-stream":   readOnly,
	"[method]descriptor.advise":              onDescriptor(func(*descriptor) any { return ok(nil) }),
	"[method]descriptor.sync-data":           onDescriptor(func(*descriptor) any { return ok(nil) }),
	"[method]descriptor.sync":                onDescriptor(func(*descriptor) any { return ok(nil) }),
	"[method]descriptor.get-flags":           onDescriptor(func(*descriptor) any { return ok(uint64(flagRead)) }),
	"[method]descriptor.get-type":            onDescriptor(func(d *descriptor) any { return ok(typeOf(d.node())) }),
	"[method]descriptor.set-size":            readOnly,
	"[method]descriptor.set-times":           readOnly,
	"[method]descriptor.read":                readFile,
	"[method]descriptor.write":               readOnly,
	"[method]descriptor.read-directory":      readDirectory,
	"[method]descriptor.create-directory-at": readOnly,
	"[method]descriptor.stat":                onDescriptor(func(d *descriptor) any { return ok(stat(d.node())) }),
	"[method]descriptor.stat-at":             atPath(2, func(n *files.Node) any { return ok(stat(n)) }),
	"[method]descriptor.set-times-at":        atPath(2, func(*files.Node) any { return fileError("read-only") }),
	"[method]descriptor.link-at":             readOnly,
	"[method]descriptor.open-at":             openAt,
	"[method]descriptor.readlink-at":         atPath(1, func(*files.Node) any { return fileError("invalid") }),
	"[method]descriptor.remove-directory-at": readOnly,
	"[method]descriptor.rename-at":           readOnly,
	"[method]descriptor.symlink-at":          readOnly,
	"[method]descriptor.unlink-file-at":      readOnly,
	"[method]descriptor.metadata-hash":       onDescriptor(func(d *descriptor) any { return ok(hash(d.node())) }),
	"[method]descriptor.metadata-hash-at":    atPath(2, func(n *files.Node) any { return ok(hash(n)) }),
	"[method]descriptor.is-same-object": func(r *run, a []any) any {
		return use[*descriptor](r, a[0]).node() == use[*descriptor](r, a[1]).node()
	},
	"[method]directory-entry-stream.read-directory-entry": nextEntry,
	"filesystem-error-code": func(r *run, a []any) any {
		if code := use[*ioError](r, a[0]).file; code != nil {
			return some(code)
		}
		return none
	},
}

// The flags of open-at.
const (
	openCreate, openDirectory, openExclusive, openTruncate = 1, 2, 4, 8

	flagRead, flagWrite, flagMutateDirectory = 1, 2, 32
)

// preopens opens the root directory and that of time zones, which libraries look paths up in.
func preopens(r *run, _ []any) any {
	all := []any{}
	if r.program == nil {
		return all
	}
	for _, d := range r.program.Directories() {
		all = append(all, []any{r.add(&descriptor{[]*files.Node{d.Node}}, 0), d.Path})
	}
	return all
}

// onDescriptor is a function that needs only its descriptor.
func onDescriptor(do func(d *descriptor) any) function {
	return func(r *run, a []any) any { return do(use[*descriptor](r, a[0])) }
}

// readOnly refuses functions that change a file.
func readOnly(r *run, a []any) any {
	use[*descriptor](r, a[0])
	return fileError("read-only")
}

// find returns the nodes on the way to a path from a directory, or the result with the error-code.
func find(d *descriptor, path string) ([]*files.Node, any) {
	switch {
	case len(path) > hostabi.MaxPath:
		return nil, fileError("name-too-long")
	case path == "":
		return nil, fileError("no-entry")
	}
	nodes, err := files.Walk(d.path, path)
	switch {
	case err == files.ErrOutside:
		return nil, fileError("not-permitted")
	case err == files.ErrNotDirectory:
		return nil, fileError("not-directory")
	case err != nil || nodes[len(nodes)-1].Host: // components call the host in other ways
		return nil, fileError("no-entry")
	}
	return nodes, nil
}

// atPath is a function on the file of the path that is one of its arguments.
func atPath(path int, do func(n *files.Node) any) function {
	return func(r *run, a []any) any {
		nodes, problem := find(use[*descriptor](r, a[0]), a[path].(string))
		if problem != nil {
			return problem
		}
		return do(nodes[len(nodes)-1])
	}
}

func openAt(r *run, a []any) any {
	nodes, problem := find(use[*descriptor](r, a[0]), a[2].(string))
	open, flags := a[3].(uint64), a[4].(uint64)
	switch {
	case problem == any(fileError("no-entry")) && open&openCreate != 0:
		return fileError("read-only")
	case problem != nil:
		return problem
	case open&openCreate != 0 && open&openExclusive != 0:
		return fileError("exist")
	case open&openDirectory != 0 && !nodes[len(nodes)-1].IsDirectory():
		return fileError("not-directory")
	case open&openTruncate != 0 || flags&(flagWrite|flagMutateDirectory) != 0:
		return fileError("read-only")
	}
	return ok(r.add(&descriptor{nodes}, 0))
}

// content returns what a file has from an offset on, or the result with the error-code.
func (r *run) content(d *descriptor, offset uint64) ([]byte, any) {
	if d.node().IsDirectory() {
		return nil, fileError("is-directory")
	}
	all, err := d.node().Content()
	if err != nil {
		r.call.LogInternal("read a file", err)
		return nil, fileError("io")
	}
	return all[min(offset, uint64(len(all))):], nil
}

func readViaStream(r *run, a []any) any {
	rest, problem := r.content(use[*descriptor](r, a[0]), a[1].(uint64))
	if problem != nil {
		return problem
	}
	return ok(r.add(&inputStream{rest: rest}, 0))
}

func readFile(r *run, a []any) any {
	rest, problem := r.content(use[*descriptor](r, a[0]), a[2].(uint64))
	if problem != nil {
		return problem
	}
	n := min(a[1].(uint64), uint64(len(rest)), maxRead)
	return ok([]any{rest[:n], n == uint64(len(rest))})
}

func readDirectory(r *run, a []any) any {
	d := use[*descriptor](r, a[0])
	if !d.node().IsDirectory() {
		return fileError("not-directory")
	}
	return ok(r.add(&directoryStream{d.node().Children()}, 0))
}

func nextEntry(r *run, a []any) any {
	s := use[*directoryStream](r, a[0])
	for len(s.rest) > 0 {
		n := s.rest[0]
		if s.rest = s.rest[1:]; !n.Host {
			return ok(some([]any{typeOf(n), n.Name}))
		}
	}
	return ok(none)
}

// typeOf is the descriptor-type of a file.
func typeOf(n *files.Node) canon.Case {
	if n.IsDirectory() {
		return canon.Case{Index: 3}
	}
	return canon.Case{Index: 6}
}

// stat is the descriptor-stat of a file.
func stat(n *files.Node) any {
	at := some(datetime(time.Unix(0, hostabi.FileTime)))
	return []any{typeOf(n), uint64(1), uint64(n.Size()), at, at, at}
}

// hash is the metadata-hash-value of a file: files do not change.
func hash(n *files.Node) any { return []any{n.ID, uint64(0)} }
