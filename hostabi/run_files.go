package hostabi

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"

	"runner.example/hostabi/fileinfo"
	"runner.example/hostabi/octets"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// A run knows the files that it may read and write to rows: those of the request's form, those that it has made, and those
// of rows that the host has given to it. So no guest gets contents by guessing an id or a digest.

const (
	// maxMadeFiles is how many files a run may make.
	maxMadeFiles = 64
	// maxFileWriters is how many of them may be written at the same time.
	maxFileWriters = 8
	// maxKnownFiles is how many files of rows a run knows.
	maxKnownFiles = 10_000
	// maxContentsPart is the most bytes that file.read returns.
	maxContentsPart = 1 << 20
)

// runFiles are the files of one run.
type runFiles struct {
	ofRows        map[string]rowFile
	made          map[string]schema.File
	begun         int      // files that the run has made, or begun to write
	pins          []func() // of the files that this run and earlier ones of the same transaction have made
	writers       map[int64]*fileWriter
	writersOpened int64
}

// rowFile is a file of a row, and the field that has it in the row that the run has got last.
type rowFile struct {
	schema.File
	owner entity.FileOwner
}

// reset prepares for a run. The pins stay until ReleaseFiles.
func (r *runFiles) reset() {
	r.closeWriters()
	*r = runFiles{pins: r.pins}
}

// ReleaseFiles releases the files that runs of this Call have made. The contents of those that no committed row names are
// deleted. The owner of the Call calls it when the transaction of the runs has ended.
func (c *Call) ReleaseFiles() {
	c.runFiles.reset()
	for _, release := range c.pins {
		release()
	}
	c.pins = nil
}

// fileObject is the JSON of a file.
type fileObject struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Type   string `json:"type"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func objectOf(f schema.File) fileObject {
	return fileObject{f.ID, f.Name, f.Type, f.Size, hex.EncodeToString(f.SHA256[:])}
}

// knownFile returns the file with an id, if the run knows it.
func (c *Call) knownFile(id string) (schema.File, bool) {
	if c.Form != nil {
		for i := range c.Form.Files {
			if c.Form.Files[i].ID == id {
				return c.Form.Files[i].File, true
			}
		}
	}
	if f, ok := c.made[id]; ok {
		return f, true
	}
	f, ok := c.ofRows[id]
	return f.File, ok
}

// writableFile returns the file with an id, if the run may write it into a row.
func (c *Call) writableFile(id string) (schema.File, bool) {
	f, ok := c.knownFile(id)
	if _, ofRow := c.ofRows[id]; !ok || !ofRow || !c.streaming {
		return f, ok
	}
	// Another transaction has read its row, which may be gone by now.
	c.pins = append(c.pins, c.Host.Store.PinBlob(f.SHA256))
	_, err := c.Host.Store.StatBlob(f.SHA256)
	return f, err == nil
}

// noteFile records that the host gives the guest a row with a file.
func (c *Call) noteFile(f schema.File, owner entity.FileOwner) {
	if c.ofRows == nil {
		c.ofRows = map[string]rowFile{}
	}
	if _, known := c.ofRows[f.ID]; known || len(c.ofRows) < maxKnownFiles {
		c.ofRows[f.ID] = rowFile{f, owner}
	}
}

// fileArgument reads the member that names a file which the run knows.
func (c *Call) fileArgument(args *arguments) schema.File {
	id := args.text("id")
	f, ok := c.knownFile(id)
	if !ok && args.err == nil {
		args.err = errUnknownFile
	}
	return f
}

var errUnknownFile = fault.New(fault.NotFound,
	"the run does not know this file: use one of its form, one that it has made, or one of a row that it has read")

// stored is a file with its pin.
type stored struct {
	file    schema.File
	release func()
	err     error
}

// storeFile stores contents, and completes the file, which has a name and the type that the guest has declared. Any
// goroutine may call it.
func storeFile(ctx context.Context, s *store.Store, f schema.File, contents io.Reader) stored {
	first := make([]byte, fileinfo.SniffBytes)
	n, err := io.ReadFull(contents, first)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return stored{err: err}
	}
	info, release, err := s.PutPinned(ctx, io.MultiReader(bytes.NewReader(first[:n]), contents))
	if err != nil {
		return stored{err: err}
	}
	f.Type, f.Size, f.SHA256 = fileinfo.Refine(fileinfo.Type(first[:n]), f.Type), info.Size, info.Digest
	return stored{f, release, nil}
}

// newFile counts a file that the run makes. media is the type that the guest has declared; empty: none.
func (c *Call) newFile(name, media string) (schema.File, error) {
	if c.begun >= maxMadeFiles {
		return schema.File{}, fault.New(fault.Limit, "a request may make at most %d files", maxMadeFiles)
	}
	c.begun++
	return schema.File{ID: ids.New(c.now()), Name: fileinfo.Name(name), Type: media}, nil
}

// keepFile waits for a file that is being stored, and makes it one that the run knows.
func (c *Call) keepFile(store func() stored) (any, error) {
	var s stored
	over := c.waitFor(func() { s = store() })
	if s.release != nil {
		c.pins = append(c.pins, s.release)
	}
	switch {
	case over != nil:
		c.unwind(over)
	case s.err != nil:
		return nil, s.err
	}
	if c.made == nil {
		c.made = map[string]schema.File{}
	}
	c.made[s.file.ID] = s.file
	return objectOf(s.file), nil
}

// mediaType reads a member that is a media type, without its parameters; empty: it is absent.
func (a *arguments) mediaType(name string) string {
	text, given := a.optionalText(name)
	if !given {
		return ""
	}
	media := fileinfo.MediaType(text)
	if media == "" {
		a.wrong("member %q must be a media type, such as text/csv", name)
	}
	return media
}

// createFile makes a file.
func createFile(c *Call, args *arguments) (any, error) {
	name, media := args.text("name"), args.mediaType("type")
	data := args.data("data")
	if err := args.end(); err != nil {
		return nil, err
	}
	f, err := c.newFile(name, media)
	if err != nil {
		return nil, err
	}
	return c.keepFile(func() stored { return storeFile(c.Context, c.Host.Store, f, bytes.NewReader(data)) })
}

// fileWriter is a file that is being written. A goroutine stores what the guest writes.
type fileWriter struct {
	in   *io.PipeWriter
	done chan stored // has the file after its end
}

// errFileClosed: the run has ended before the file.
var errFileClosed = errors.New("the run ended before the file")

// closeWriters gives up the files that are being written.
func (r *runFiles) closeWriters() {
	for number, w := range r.writers {
		_ = w.in.CloseWithError(errFileClosed)
		if s := <-w.done; s.release != nil { // it was stored, and never taken
			s.release()
		}
		delete(r.writers, number)
	}
}

// beginFile begins to write a file.
func beginFile(c *Call, args *arguments) (any, error) {
	name, media := args.text("name"), args.mediaType("type")
	if err := args.end(); err != nil {
		return nil, err
	}
	if len(c.writers) >= maxFileWriters {
		return nil, fault.New(fault.Limit, "a request may write at most %d files at the same time: end one first", maxFileWriters)
	}
	f, err := c.newFile(name, media)
	if err != nil {
		return nil, err
	}
	out, in := io.Pipe()
	w := &fileWriter{in, make(chan stored, 1)}
	if c.writers == nil {
		c.writers = map[int64]*fileWriter{}
	}
	c.writersOpened++
	c.writers[c.writersOpened] = w
	ctx, s := c.Context, c.Host.Store
	go func() { // closeWriters or endFile waits for it
		kept := storeFile(ctx, s, f, out)
		_ = out.CloseWithError(kept.err) // further writes fail
		w.done <- kept
	}()
	return struct {
		Writer int64 `json:"writer"`
	}{c.writersOpened}, nil
}

// writer reads the member that names an open writer.
func (c *Call) writer(args *arguments) (int64, *fileWriter) {
	number, ok := args.optionalWhole("writer")
	w := c.writers[number]
	switch {
	case !ok:
		args.wrong("member %q is missing", "writer")
	case w == nil:
		args.wrong("member %q is not the number of an open file", "writer")
	}
	return number, w
}

// writeFilePart writes bytes to a file.
func writeFilePart(c *Call, args *arguments) (any, error) {
	_, w := c.writer(args)
	data := args.data("data")
	if err := args.end(); err != nil {
		return nil, err
	}
	var err error
	c.pause(func() { _, err = w.in.Write(data) })
	return struct{}{}, err
}

// endFile ends a file.
func endFile(c *Call, args *arguments) (any, error) {
	number, w := c.writer(args)
	if err := args.end(); err != nil {
		return nil, err
	}
	return c.keepFile(func() stored {
		delete(c.writers, number)
		_ = w.in.Close()
		return <-w.done
	})
}

// readFilePart returns a part of a file.
func readFilePart(c *Call, _ string, text []byte, out *entity.Result) error {
	args, err := readArguments(text, &c.work)
	if err != nil {
		return err
	}
	f := c.fileArgument(args)
	offset, _ := args.optionalWhole("offset")
	length, given := args.optionalWhole("length")
	if !given {
		length = maxContentsPart
	}
	if offset < 0 {
		args.wrong("member %q must not be negative", "offset")
	}
	if length < 1 || length > maxContentsPart {
		args.wrong("member %q must be from 1 to %d", "length", maxContentsPart)
	}
	if err := args.end(); err != nil {
		return err
	}
	data := make([]byte, max(0, min(length, f.Size-offset)))
	if err := c.work.Spend(len(data)); err != nil {
		return err
	}
	if len(data) > 0 {
		if c.pause(func() { err = readBlob(c.Context, c.Host.Store, f.SHA256, data, offset) }); err != nil {
			return err
		}
	}
	*out = entity.Result{JSON: append(out.JSON[:0], `{"data":`...)}
	out.JSON, err = octets.Append(out.JSON, data, &c.work)
	if offset+int64(len(data)) >= f.Size {
		out.JSON = append(out.JSON, `,"end":true`...)
	}
	out.JSON = append(out.JSON, '}')
	return err
}

// readBlob fills data from a blob.
func readBlob(ctx context.Context, s *store.Store, d store.Digest, data []byte, offset int64) error {
	blob, err := s.OpenBlob(ctx, d)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fault.New(fault.NotFound, "the contents of the file are gone")
	case err != nil:
		return err
	}
	_, err = blob.ReadAt(data, offset)
	return errors.Join(err, blob.Close())
}
