package salvage

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"runner.example/internal/clock"
	"runner.example/internal/console"
	"runner.example/internal/system/disk"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// Report is report.json, and the document of `runner store salvage --json`.
type Report struct {
	// NewestCommit is the newest commit of which something was read, AcknowledgedCommit the
	// newest acknowledged one; 0 if unknown.
	NewestCommit       uint64    `json:"newestCommit"`
	AcknowledgedCommit uint64    `json:"acknowledgedCommit"`
	Entities           []*Entity `json:"entities"`
	Losses             []Loss    `json:"losses"`
	// NotDeclared are the entities and fields of other releases that the schema does not declare,
	// and that are not in the archive.
	NotDeclared []string `json:"notDeclared,omitempty"`
	// RowsError is the reason why no rows could be written; "" if they could.
	RowsError string `json:"rowsError,omitempty"`
}

// Entity counts the rows of an entity.
type Entity struct {
	Name string `json:"name"`
	Rows int    `json:"rows"`
	// Doubtful rows may differ from the acknowledged ones; Unreadable rows are missing.
	Doubtful   int `json:"doubtful"`
	Unreadable int `json:"unreadable"`
}

// Loss is an unreadable part of a file: from From to before To, or the whole file if both are 0.
type Loss struct {
	File  string `json:"file"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Cause string `json:"cause"`
}

// Whole reports whether everything could be read.
func (r *Report) Whole() bool {
	bad := slices.ContainsFunc(r.Entities, func(e *Entity) bool { return e.Doubtful+e.Unreadable > 0 })
	return !bad && len(r.Losses) == 0 && len(r.NotDeclared) == 0 && r.RowsError == ""
}

// isBelow reports whether the directory dir is root or below it.
func isBelow(dir, root string) (bool, error) {
	top, err := os.Stat(root)
	if err != nil {
		return false, err
	}
	if dir, err = filepath.Abs(dir); err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	for err == nil {
		var info os.FileInfo
		if info, err = os.Stat(dir); err == nil && os.SameFile(info, top) {
			return true, nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return false, err
}

// Run salvages the data directory into a new file at path, mode 0600. progress is called with the
// bytes read so far and in all, and with its end. The data directory is not changed.
func Run(ctx context.Context, data, path string, s *schema.Schema,
	progress func(done, total int64)) (_ *Report, err error) {
	if inside, err := isBelow(filepath.Dir(path), data); err != nil {
		return nil, console.Invalid("salvage: %w", err)
	} else if inside {
		return nil, console.Invalid(
			"salvage: %q is in the data directory, which must not change: choose a file outside", path)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, console.Invalid("salvage: %w", err)
	}
	defer func() {
		err = errors.Join(err, file.Close())
		if err != nil {
			_ = os.Remove(path) // an incomplete archive looks like a complete one
		}
	}()
	work, err := os.MkdirTemp(filepath.Dir(path), ".salvage-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := errors.Join(disk.MakePrivate(path), disk.MakePrivate(work)); err != nil {
		return nil, err
	}
	if err := checkFreeSpace(data, work); err != nil {
		return nil, err
	}
	total, err := store.SalvageBytes(data)
	if err != nil {
		return nil, err
	}
	found, err := store.Salvage(ctx, store.SalvageOptions{
		Dir: data, Into: filepath.Join(work, "store"),
		Progress: func(done, _ int64) { progress(done, total) },
	})
	if err != nil {
		return nil, err
	}
	report := &Report{
		NewestCommit: uint64(found.Newest), AcknowledgedCommit: uint64(found.Acknowledged), Losses: []Loss{},
		Entities: []*Entity{},
	}
	for _, l := range found.Losses {
		report.Losses = append(report.Losses, Loss{l.File, l.From, l.To, l.Cause.Error()})
	}
	rows := &salvagedRows{dir: filepath.Join(work, "files"), files: map[string]*rowFile{}, report: report, found: found}
	if cannot := rows.write(ctx, s); cannot != nil {
		if ctx.Err() != nil {
			return nil, errors.Join(cannot, found.Store.Close())
		}
		report.RowsError = cannot.Error()
	}
	if err := found.Store.Close(); err != nil {
		return nil, err
	}
	return report, rows.archive(file)
}

// checkFreeSpace refuses a salvage that would fill the disk.
func checkFreeSpace(data, work string) error {
	need, err := store.SalvageBytes(data)
	if err != nil {
		return err
	}
	free, _, err := disk.Space(work)
	if err != nil {
		return err
	}
	if free < need {
		return &console.Failure{
			Status: console.StatusFailed,
			Err:    fmt.Errorf("%d MiB are free on the disk of the file, and %d MiB are needed", free>>20, need>>20),
			Hint:   "name a file on another disk",
		}
	}
	return nil
}

// salvagedRows are the files of rows, before they are put into the archive.
type salvagedRows struct {
	dir    string
	files  map[string]*rowFile // by their names in the archive
	report *Report
	found  *store.Salvaged
}

type rowFile struct {
	*bufio.Writer
	file *os.File
}

// write writes all rows that can be read.
func (r *salvagedRows) write(ctx context.Context, s *schema.Schema) error {
	var now *Entity
	kept, err := entity.EachRow(ctx, r.found.Store, s, func(name string, row *entity.StoredRow) error {
		if now == nil || now.Name != name {
			now = &Entity{Name: name}
			r.report.Entities = append(r.report.Entities, now)
		}
		directory := "rows"
		switch {
		case row.Err != nil:
			now.Unreadable++
			return nil
		case r.found.Doubtful(row.Key):
			directory = "doubtful"
			now.Doubtful++
		default:
			now.Rows++
		}
		if !s.Typed && row.Tenant != "" {
			name += "@" + url.PathEscape(row.Tenant)
		}
		return r.line(directory+"/"+name+".jsonl", row.JSON)
	})
	r.report.NotDeclared = kept
	for _, f := range r.files {
		err = errors.Join(err, f.Flush(), f.file.Close())
	}
	return err
}

func (r *salvagedRows) line(name string, object []byte) error {
	f := r.files[name]
	if f == nil {
		path := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		f = &rowFile{bufio.NewWriter(file), file}
		r.files[name] = f
	}
	if _, err := f.Write(object); err != nil {
		return err
	}
	return f.WriteByte('\n')
}

// archive writes everything as one file.
func (r *salvagedRows) archive(out io.Writer) error {
	w := tar.NewWriter(out)
	text, err := json.MarshalIndent(r.report, "", "  ")
	if err != nil {
		return err
	}
	now := clock.System()
	add := func(name string, size int64) error {
		return w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: now})
	}
	if err := add("report.json", int64(len(text)+1)); err != nil {
		return err
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return err
	}
	var names []string
	for name := range r.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := func() error {
			f, err := os.Open(filepath.Join(r.dir, name))
			if err != nil {
				return err
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				return err
			}
			if err := add(name, info.Size()); err != nil {
				return err
			}
			_, err = io.Copy(w, f)
			return err
		}(); err != nil {
			return err
		}
	}
	return w.Close()
}
