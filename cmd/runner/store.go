package main

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
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/spf13/cobra"

	"runner.example/entity"
	"runner.example/internal/console"
	"runner.example/schema"
	"runner.example/store"
)

const storeHelp = `Work on the files of the store while no server runs.`

func (c *cli) storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "salvage the rows of a damaged store",
		Long:  storeHelp,
	}
	cmd.AddCommand(c.storeSalvageCommand())
	c.onlySubcommands(cmd)
	return cmd
}

const salvageHelp = `Read a damaged data folder and write the readable rows to a file. The folder is not
changed. No other process may use it meanwhile.

The file is a tar archive, for runner data import:

  rows/<entity>.jsonl         rows as they were acknowledged
  doubtful/<entity>.jsonl     rows whose newer version or deletion may be in the
                              unreadable parts
  report.json                 the unreadable parts of each file

Rows of a tenant in a schema without entities are in <entity>@<tenant>.jsonl, for data
import --tenant. API keys, sessions and the audit are not in the archive: a key whose
revocation cannot be read would be accepted again.

The schema in the app's folder must be the one that is activated in the store. Until it
ends, the command needs free space next to the file: as much as the store takes, and
256 MiB more.

The status is 0 if everything could be read, and 1 if not; the archive is complete in
both cases.`

func (c *cli) storeSalvageCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "salvage <file>",
		Short:   "write the readable rows of a damaged store to a file",
		Long:    salvageHelp,
		Example: "  runner store salvage rescued.tar",
		Args:    exactly(1, "a file, created with mode 0600"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.openApp(cmd)
			if err != nil {
				return err
			}
			if err := a.CheckData(); err != nil {
				return err
			}
			if !a.HasData() {
				return &console.Failure{Status: console.StatusNotFound, Err: fmt.Errorf("there is no data folder %q", a.Data), Hint: "name another one with --data"}
			}
			s, _, err := a.Compile()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM) // beside the file there are rows until it ends
			defer stop()
			report, err := c.salvage(ctx, a.Data, args[0], s)
			if errors.Is(err, store.ErrLocked) {
				return &console.Failure{Status: console.StatusFailed, Err: err, Hint: "stop the server first"}
			}
			if err != nil {
				return err
			}
			return c.tellSalvaged(report, args[0])
		},
	}
}

// salvaged is report.json, and the document of `runner store salvage --json`.
type salvaged struct {
	// NewestCommit is the newest commit of which something was read, and
	// AcknowledgedCommit the newest one that was acknowledged; 0 where it is not known.
	NewestCommit       uint64            `json:"newestCommit"`
	AcknowledgedCommit uint64            `json:"acknowledgedCommit"`
	Entities           []*salvagedEntity `json:"entities"`
	Losses             []salvageLoss     `json:"losses"`
	// RowsError is why no rows could be written; "" if they could.
	RowsError string `json:"rowsError,omitempty"`
}

type salvagedEntity struct {
	Name string `json:"name"`
	Rows int    `json:"rows"`
	// Doubtful rows may not be what was acknowledged, Unreadable ones are in no file.
	Doubtful   int `json:"doubtful"`
	Unreadable int `json:"unreadable"`
}

// salvageLoss is a part of a file that cannot be read: From up to and without To, or the
// whole file where both are 0.
type salvageLoss struct {
	File  string `json:"file"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Cause string `json:"cause"`
}

func (r *salvaged) whole() bool {
	bad := slices.ContainsFunc(r.Entities, func(e *salvagedEntity) bool { return e.Doubtful+e.Unreadable > 0 })
	return !bad && len(r.Losses) == 0 && r.RowsError == ""
}

// isBelow reports whether the folder dir is root or below it.
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

func (c *cli) salvage(ctx context.Context, data, path string, s *schema.Schema) (_ *salvaged, err error) {
	if inside, err := isBelow(filepath.Dir(path), data); err != nil {
		return nil, console.Invalid("salvage: %w", err)
	} else if inside {
		return nil, console.Invalid("salvage: %q is in the data folder, in which nothing is changed: choose a file outside", path)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, console.Invalid("salvage: %w", err)
	}
	defer func() {
		err = errors.Join(err, file.Close())
		if err != nil {
			_ = os.Remove(path) // half of it looks like all of it
		}
	}()
	work, err := os.MkdirTemp(filepath.Dir(path), ".salvage-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := checkFreeSpace(data, work); err != nil {
		return nil, err
	}
	total, err := store.SalvageBytes(data)
	if err != nil {
		return nil, err
	}
	bar, before := c.newBar("reading "+data, total, progress.UnitsBytes), int64(0)
	found, err := store.Salvage(ctx, store.SalvageOptions{
		Dir: data, Into: filepath.Join(work, "store"),
		Progress: func(done, _ int64) { bar.add(done - before); before = done },
	})
	bar.end(err)
	if err != nil {
		return nil, err
	}
	report := &salvaged{NewestCommit: uint64(found.Newest), AcknowledgedCommit: uint64(found.Acknowledged), Losses: []salvageLoss{}, Entities: []*salvagedEntity{}}
	for _, l := range found.Losses {
		report.Losses = append(report.Losses, salvageLoss{l.File, l.From, l.To, l.Cause.Error()})
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
	var disk syscall.Statfs_t
	if err := syscall.Statfs(work, &disk); err != nil {
		return err
	}
	if free := int64(disk.Bavail) * disk.Bsize; free < need {
		return &console.Failure{
			Status: console.StatusFailed, Err: fmt.Errorf("%d MiB are free on the disk of the file, and %d MiB are needed", free>>20, need>>20),
			Hint: "name a file on another disk",
		}
	}
	return nil
}

// salvagedRows are the files of rows, before they are put into the archive.
type salvagedRows struct {
	dir    string
	files  map[string]*rowFile // by their names in the archive
	report *salvaged
	found  *store.Salvaged
}

type rowFile struct {
	*bufio.Writer
	file *os.File
}

// write writes all rows that can be read.
func (r *salvagedRows) write(ctx context.Context, s *schema.Schema) error {
	var now *salvagedEntity
	err := entity.EachRow(ctx, r.found.Store, s, func(name string, row *entity.StoredRow) error {
		if now == nil || now.Name != name {
			now = &salvagedEntity{Name: name}
			r.report.Entities = append(r.report.Entities, now)
		}
		folder := "rows"
		switch {
		case row.Err != nil:
			now.Unreadable++
			return nil
		case r.found.Doubtful(row.Key):
			folder = "doubtful"
			now.Doubtful++
		default:
			now.Rows++
		}
		if !s.Typed && row.Tenant != "" {
			name += "@" + url.PathEscape(row.Tenant)
		}
		return r.line(folder+"/"+name+".jsonl", row.JSON)
	})
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
	now := time.Now()
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

// maxLosses is how many losses are told; the report has all.
const maxLosses = 20

func (c *cli) tellSalvaged(r *salvaged, path string) error {
	if c.JSON {
		if err := c.PrintJSON(r); err != nil {
			return err
		}
	} else {
		var table [][]string
		for _, e := range r.Entities {
			table = append(table, []string{e.Name, fmt.Sprint(e.Rows), fmt.Sprint(e.Doubtful), fmt.Sprint(e.Unreadable)})
		}
		if err := c.PrintTable([]string{"ENTITY", "ROWS", "DOUBTFUL", "UNREADABLE"}, table, "there are no rows"); err != nil {
			return err
		}
	}
	if r.whole() {
		c.Say("", "everything could be read; it is in "+path)
		return nil
	}
	for i, l := range r.Losses {
		if i == maxLosses {
			c.Say("", fmt.Sprintf("… and %d more, see report.json", len(r.Losses)-i))
			break
		}
		where := l.File
		if l.To > 0 {
			where += fmt.Sprintf(", bytes %d to %d", l.From, l.To-1)
		}
		c.Say("cannot read ", where+": "+l.Cause)
	}
	if r.RowsError != "" {
		c.Say("cannot write rows: ", r.RowsError)
	}
	return &console.Failure{
		Status: console.StatusFailed, Err: fmt.Errorf("not everything could be read; the readable rows are in %s", path),
		Hint: "unpack it with tar -xf, check the doubtful rows, and import the rows into a new data folder with runner data import",
	}
}
