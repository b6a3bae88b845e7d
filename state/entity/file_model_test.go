package entity_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/state/entity"
	"runner.example/state/entity/catalog"
	"runner.example/state/store"
	"runner.example/state/store/frame"
)

const crashFiles = "ENTITY_CRASH_FILES" // set: the child runs crashWithFiles in place of crashUnderLoad

const albums = `
auth { session cookie { idle: 30m } }
entity Album { id: id name: string cover: file? @@allow all to session }
entity Photo {
  id: id
  album: Album? @onDelete(cascade)
  name: string
  image: file
  small: file?
  @@allow all to session
}
`

// fileHost does to rows and files what requests do: it uploads under pins, and writes rows that have the uploaded files
// or those of rows that it reads.
type fileHost struct {
	store *store.Store
	model *entity.Model
	who   *caller.Caller

	mu  sync.Mutex
	ids ids.Sequence
}

func openFileHost(dir string) (*fileHost, error) {
	st, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	sources := []diag.Source{{Name: "app.schema", Text: []byte(albums)}}
	s, found := compiler.Compile(sources, compiler.Options{})
	if s == nil {
		return nil, fmt.Errorf("compile: %v", found)
	}
	model, err := entity.Activate(context.Background(), st, s, sources, entity.Options{})
	if err == nil {
		err = model.BuildIndexes(context.Background(), nil)
	}
	return &fileHost{store: st, model: model, who: &caller.Caller{Kind: caller.Session, UserID: "u1"}}, err
}

// fileRequest is one transaction with the files that it may write.
type fileRequest struct {
	*entity.Access
	host  *fileHost
	known map[string]schema.File
}

// do runs an operation and returns its rows.
func (r *fileRequest) do(op string, args any) ([]map[string]any, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	var out entity.Result
	if err := r.Do(op, text, &out); err != nil {
		return nil, err
	}
	var got struct{ Rows []map[string]any }
	return got.Rows, json.Unmarshal(out.JSON, &got)
}

// request uploads contents and runs fn in a transaction, with the ids of the files. The pins end after the commit.
func (h *fileHost) request(contents []string, fn func(r *fileRequest, files []any) error) error {
	known := map[string]schema.File{}
	var files []any
	for _, text := range contents {
		info, release, err := h.store.PutPinned(context.Background(), strings.NewReader(text))
		if err != nil {
			return err
		}
		defer release()
		h.mu.Lock()
		id, err := h.ids.Next(time.Now())
		h.mu.Unlock()
		if err != nil {
			return err
		}
		known[id] = schema.File{ID: id, Name: "f", Type: "text/plain", Size: info.Size, SHA256: info.Digest}
		files = append(files, map[string]any{"id": id})
	}
	_, err := h.store.Update(context.Background(), func(tx *store.Tx) error {
		r := &fileRequest{new(entity.Access), h, known}
		r.Reset(h.model, tx, h.who, 100_000)
		seen := map[string]schema.File{}
		r.SawFile = func(f schema.File, _ entity.FileOwner) { seen[f.ID] = f }
		r.FileOf = func(id string) (schema.File, bool) {
			f, ok := known[id]
			if !ok {
				f, ok = seen[id]
			}
			return f, ok
		}
		return fn(r, files)
	})
	return err
}

var errRolledBack = errors.New("the handler failed")

// randomRequest runs one random request. Names of rows begin with prefix.
func (h *fileHost) randomRequest(d dice, prefix string, texts []string) error {
	pick := func() string {
		if d.IntN(2) == 0 {
			return fmt.Sprint("only once ", d.Uint64()) // no other request stores it again
		}
		return texts[d.IntN(len(texts))]
	}
	some := func(r *fileRequest, from string) (map[string]any, error) {
		rows, err := r.do("query", map[string]any{"from": from, "where": []any{[]any{"name", "startsWith", prefix}}, "limit": 20})
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		return rows[d.IntN(len(rows))], nil
	}
	name := prefix + strconv.Itoa(d.IntN(1000))
	switch d.IntN(9) {
	case 0:
		return h.request([]string{pick()}, func(r *fileRequest, files []any) error {
			_, err := r.do("insert", map[string]any{"into": "Album", "values": map[string]any{"name": name, "cover": files[0]}})
			return err
		})
	case 1, 2:
		return h.request([]string{pick(), pick()}, func(r *fileRequest, files []any) error {
			album, err := some(r, "Album")
			if err != nil {
				return err
			}
			values := map[string]any{"name": name, "image": files[0], "small": files[1], "album": album["id"]}
			_, err = r.do("insert", map[string]any{"into": "Photo", "values": values})
			return err
		})
	case 3:
		return h.request([]string{pick()}, func(r *fileRequest, files []any) error {
			photo, err := some(r, "Photo")
			if photo == nil {
				return err
			}
			_, err = r.do("update", map[string]any{"in": "Photo", "set": map[string]any{"image": files[0]}, "where": byID(photo["id"].(string))})
			return err
		})
	case 4: // copies a file from a row
		return h.request(nil, func(r *fileRequest, _ []any) error {
			photo, err := some(r, "Photo")
			if photo == nil {
				return err
			}
			_, err = r.do("insert", map[string]any{"into": "Album", "values": map[string]any{"name": name, "cover": photo["image"]}})
			return err
		})
	case 5:
		return h.request([]string{pick()}, func(r *fileRequest, files []any) error {
			if _, err := r.do("insert", map[string]any{"into": "Album", "values": map[string]any{"name": name, "cover": files[0]}}); err != nil {
				return err
			}
			return errRolledBack
		})
	case 6:
		return h.request(nil, func(r *fileRequest, _ []any) error {
			photo, err := some(r, "Photo")
			if photo == nil {
				return err
			}
			_, err = r.do("update", map[string]any{"in": "Photo", "set": map[string]any{"small": nil}, "where": byID(photo["id"].(string))})
			return err
		})
	case 7:
		return h.request([]string{pick()}, func(*fileRequest, []any) error { return nil })
	}
	return h.request(nil, func(r *fileRequest, _ []any) error {
		from := []string{"Album", "Photo"}[d.IntN(2)]
		row, err := some(r, from)
		if row == nil {
			return err
		}
		_, err = r.do("delete", map[string]any{"from": from, "where": byID(row["id"].(string))})
		return err
	})
}

// sweep deletes what nothing names, as if it were old.
func (h *fileHost) sweep() error {
	none := func(store.Digest) bool { return false }
	return h.store.SweepBlobs(context.Background(), time.Now().Add(time.Hour), none, func(store.BlobInfo) {})
}

// check returns an error unless the rows' files, the references and the contents are the same.
func (h *fileHost) check() error {
	if err := catalog.Verify(context.Background(), h.store); err != nil {
		return err
	}
	if err := h.store.Verify(context.Background()); err != nil { // the bytes have their digests
		return err
	}
	if err := h.sweep(); err != nil {
		return err
	}
	named := map[string]int64{}
	err := h.request(nil, func(r *fileRequest, _ []any) error {
		clear(named)
		for from, fields := range map[string][]string{"Album": {"cover"}, "Photo": {"image", "small"}} {
			for cursor := any(nil); ; {
				text, err := json.Marshal(map[string]any{"from": from, "limit": 1000, "cursor": cursor})
				if err != nil {
					return err
				}
				var out entity.Result
				if err := r.Do("query", text, &out); err != nil {
					return err
				}
				var page struct {
					Rows       []map[string]any
					NextCursor any
				}
				if err := json.Unmarshal(out.JSON, &page); err != nil {
					return err
				}
				for _, row := range page.Rows {
					for _, field := range fields {
						if f, ok := row[field].(map[string]any); ok {
							named[f["sha256"].(string)] = int64(f["size"].(float64))
						}
					}
				}
				if cursor = page.NextCursor; cursor == nil {
					break
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	blobs, err := h.store.Blobs()
	if err != nil {
		return err
	}
	for _, b := range blobs {
		size, ok := named[b.Digest.String()]
		if !ok || size != b.Size {
			return fmt.Errorf("the contents %v of %d bytes: rows name %d bytes (%v)", b.Digest, b.Size, size, ok)
		}
		delete(named, b.Digest.String())
	}
	if len(named) > 0 {
		return fmt.Errorf("rows name contents that are not there: %v", named)
	}
	return nil
}

// fileTexts are contents that requests of a writer upload again and again: some are shared with other writers.
func fileTexts(own string) []string {
	return []string{"", "shared", strings.Repeat("long", 50_000), own, own + own}
}

// conflicts reports the errors that concurrent requests may have.
func conflicts(err error) bool {
	return err == nil || errors.Is(err, errRolledBack) || errors.Is(err, store.ErrConflict) || fault.CodeOf(err) == fault.Conflict
}

// Goroutines run random requests while another one sweeps, with starts in between.
func TestRowsAndContentsAgreeAfterRandomRequests(t *testing.T) {
	seed := newSeed(t)
	rounds, requests := 3, 60
	if long() {
		rounds, requests = 20, 500
	}
	dir := t.TempDir()
	for round := range rounds {
		h, err := openFileHost(dir)
		if err != nil {
			t.Fatal(err)
		}
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				d := newDice(seed, uint64(round*10+w))
				for range requests {
					if err := h.randomRequest(d, fmt.Sprint("w", w, "-"), fileTexts(fmt.Sprint(w))); !conflicts(err) {
						t.Error(err)
						return
					}
				}
			})
		}
		stop, swept := make(chan struct{}), make(chan error, 1)
		go func() {
			for {
				select {
				case <-stop:
					swept <- nil
					return
				default:
					if err := h.sweep(); err != nil {
						swept <- err
						return
					}
				}
			}
		}()
		writers.Wait()
		close(stop)
		if err := errors.Join(<-swept, h.check(), h.store.Close()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

// crashWithFiles is the main function of a child that runs random requests, and sweeps, without end.
func crashWithFiles(dir, round string) {
	h, err := openFileHost(dir)
	if err != nil {
		panic(err)
	}
	if err := h.check(); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	n, err := strconv.Atoi(round)
	if err != nil {
		panic(err)
	}
	var out sync.Mutex
	var done sync.WaitGroup
	for w := range 4 {
		done.Go(func() {
			d := newDice(uint64(n), uint64(w))
			for {
				err := h.randomRequest(d, fmt.Sprint("w", w, "-"), fileTexts(fmt.Sprint(w)))
				out.Lock()
				if conflicts(err) {
					fmt.Println("done")
				} else {
					fmt.Println("error", err)
					os.Exit(1)
				}
				out.Unlock()
			}
		})
	}
	done.Go(func() {
		for {
			if err := h.sweep(); err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
		}
	})
	done.Wait()
}

// A child that uploads, writes and sweeps is killed at random. No row is without its contents then, and what no row names
// is gone with the next sweep.
func TestRowsAndContentsAgreeAfterCrashes(t *testing.T) {
	d := newDice(newSeed(t), 0)
	rounds := 5
	if long() {
		rounds = 100
	}
	dir := t.TempDir()
	for round := range rounds {
		killAfter(t, dir, round, 1+d.IntN(200))
		h, err := openFileHost(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(h.check(), h.store.Close()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

// killAfter runs a child and kills it after a number of requests.
func killAfter(t *testing.T, dir string, round, requests int) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashDir+"="+dir, crashRound+"="+strconv.Itoa(round), crashFiles+"=1")
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 1; lines.Scan(); n++ {
		if line := lines.Text(); !slices.Contains([]string{"done", ""}, line) && !strings.HasPrefix("done", line) {
			t.Errorf("child says %q", line)
		}
		if n == requests {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, _ = io.Copy(io.Discard, out)
	_ = child.Wait() // it was killed
}

// A backup that is written while requests run has the contents that its rows name.
func TestABackupHasTheContentsOfItsRows(t *testing.T) {
	h, err := openFileHost(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	seed := newSeed(t)
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			d := newDice(seed, uint64(w))
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := h.randomRequest(d, fmt.Sprint("w", w, "-"), fileTexts(fmt.Sprint(w))); !conflicts(err) {
					t.Error(err)
					return
				}
				if err := h.sweep(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var backups []*bytes.Buffer
	for range 5 {
		var copied bytes.Buffer
		if _, err := h.store.Backup(context.Background(), &copied, nil, nil); err != nil {
			t.Error(err)
		}
		backups = append(backups, &copied)
	}
	close(stop)
	writers.Wait()
	if err := errors.Join(h.check(), h.store.Close()); err != nil {
		t.Error(err)
	}
	for _, copied := range backups {
		dir := t.TempDir()
		st, err := store.Open(store.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		in, _, err := frame.NewReader(context.Background(), copied)
		if err == nil {
			err = st.Restore(context.Background(), in)
		}
		if err := errors.Join(err, st.Close()); err != nil {
			t.Fatal(err)
		}
		restored, err := openFileHost(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(restored.check(), restored.store.Close()); err != nil {
			t.Error(err)
		}
	}
}
