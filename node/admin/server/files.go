package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"runner.example/hostabi/fileinfo"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/schema"
	"runner.example/state/store"
)

// rowFile is a file that a row names.
type rowFile struct {
	admin.FileOfRow
	file schema.File
	err  error // the value is not a file, or too large: the rest is zero but Index and Field
}

// filesOf returns the files that rows of an entity name, in their order. Their sizes are checked, and not their types, which
// follow from the bytes. A row that is nil or not an object has none.
func (l *Local) filesOf(entity string, rows []json.RawMessage) (all []rowFile) {
	m, err := l.model()
	if err != nil {
		return nil // the operation on the rows says it
	}
	e := m.Schema().Entity(entity)
	if e == nil {
		return nil
	}
	types := map[string]*schema.Type{}
	var fields []string
	for _, f := range e.Fields {
		if f.Type.Kind == schema.FileKind {
			fields = append(fields, f.Name)
			types[f.Name] = &schema.Type{Kind: schema.FileKind, MaxBytes: f.Type.MaxBytes}
		}
	}
	for i := 0; i < len(rows) && len(fields) > 0; i++ {
		var members map[string]json.RawMessage
		if rows[i] == nil || json.Unmarshal(rows[i], &members) != nil {
			continue
		}
		for _, name := range fields {
			raw, given := members[name]
			if !given || string(raw) == "null" {
				continue
			}
			v, err := types[name].Parse(raw)
			f := v.File()
			all = append(all, rowFile{
				admin.FileOfRow{Index: i, Field: name, Digest: f.SHA256, Size: f.Size}, f, err,
			})
		}
	}
	return all
}

// filesToImport returns the files whose contents an import needs.
func (l *Local) filesToImport(ctx context.Context, who keystore.Authority, args admin.ImportRows) (found admin.FilesOfRows, err error) {
	found.Files = []admin.FileOfRow{}
	rows, _, err := l.rowsOf(&args)
	if err != nil {
		return found, err
	}
	files := l.filesOf(args.Entity, rows)
	if len(files) == 0 {
		return found, nil
	}
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		found.Files = found.Files[:0]
		skipped := -1 // the last row
		for _, f := range files {
			if f.err != nil || f.Index == skipped {
				continue
			}
			if args.SkipExisting {
				exists, err := l.exists(tx, &who.Caller, args.Entity, rows[f.Index])
				if err != nil {
					return err
				}
				if exists {
					skipped = f.Index
					continue
				}
			}
			found.Files = append(found.Files, f.FileOfRow)
		}
		return nil
	})
	return found, err
}

// importedFiles are the files of the rows of an import.
type importedFiles struct {
	byID map[string]schema.File
	// wrong has, by the index of a row, why it cannot be imported.
	wrong map[int]string
	pins  []func()
}

// known returns the file with an id.
func (files *importedFiles) known(id string) (schema.File, bool) {
	f, ok := files.byID[id]
	return f, ok
}

// refuse adds a reason for which a row cannot be imported.
func (files *importedFiles) refuse(index int, message string) {
	if before := files.wrong[index]; before != "" {
		message = before + "; " + message
	}
	files.wrong[index] = message
}

// release releases the contents, after the transaction of the rows.
func (files *importedFiles) release() {
	for _, release := range files.pins {
		release()
	}
}

// filesForImport pins the contents of the files of rows, and finds out their types. It adds the rows that the client
// refuses. The caller releases them.
func (l *Local) filesForImport(ctx context.Context, args *admin.ImportRows, rows []json.RawMessage) (files *importedFiles, err error) {
	files = &importedFiles{byID: map[string]schema.File{}, wrong: map[int]string{}}
	ofClient := map[int]bool{} // the client knows more about their files
	for _, row := range args.Refused {
		files.refuse(row.Index, row.Message)
		ofClient[row.Index] = true
	}
	type contents struct {
		size  int64
		media string // found from the bytes
		err   error
	}
	seen := map[store.Digest]contents{}
	for _, f := range l.filesOf(args.Entity, rows) {
		if ofClient[f.Index] {
			continue
		}
		if f.err != nil {
			files.refuse(f.Index, fmt.Sprintf("%s %v", f.Field, f.err))
			continue
		}
		c, again := seen[f.Digest]
		if !again {
			files.pins = append(files.pins, l.Store.PinBlob(f.Digest))
			c.size, c.media, c.err = l.contentsOf(ctx, f.Digest)
			seen[f.Digest] = c
		}
		switch {
		case errors.Is(c.err, store.ErrNotFound):
			files.refuse(f.Index, fmt.Sprintf("%s: the contents with the SHA-256 %v are missing: name the directory that has them with --files", f.Field, f.Digest))
			continue
		case c.err != nil:
			files.release()
			return nil, c.err
		case c.size != f.Size:
			files.refuse(f.Index, fmt.Sprintf("%s must have the size of its contents: %d bytes, and not %d", f.Field, c.size, f.Size))
			continue
		}
		f.file.Type = fileinfo.Refine(c.media, fileinfo.MediaType(f.file.Type))
		if other, twice := files.byID[f.file.ID]; twice && other != f.file {
			files.refuse(f.Index, fmt.Sprintf("%s has the id of another file, %s", f.Field, f.file.ID))
			continue
		}
		files.byID[f.file.ID] = f.file
	}
	return files, nil
}

// contentsOf returns the size of contents and the type of their bytes.
func (l *Local) contentsOf(ctx context.Context, d store.Digest) (size int64, media string, err error) {
	blob, err := l.Store.OpenBlob(ctx, d)
	if err != nil {
		return 0, "", err
	}
	first := make([]byte, min(fileinfo.SniffBytes, blob.Size()))
	_, err = io.ReadFull(io.NewSectionReader(blob, 0, blob.Size()), first)
	return blob.Size(), fileinfo.Type(first), errors.Join(err, blob.Close())
}

// putFile stores contents for an import. A sweep deletes them after an hour, if no row has them by then.
func (l *Local) putFile(ctx context.Context, f admin.Blob, contents io.Reader) error {
	info, release, err := l.Store.PutPinned(ctx, io.LimitReader(contents, f.Size+1))
	if err != nil {
		return err
	}
	defer release()
	switch {
	case info.Size > f.Size:
		return fault.New(fault.Invalid, "more than the declared %d bytes were sent", f.Size)
	case info.Size < f.Size:
		return fault.New(fault.Invalid, "%d of the declared %d bytes were sent", info.Size, f.Size)
	case info.Digest != f.Digest:
		return fault.New(fault.Invalid, "the bytes have the SHA-256 %v, not %v: they were changed", info.Digest, f.Digest)
	}
	l.Store.AdoptBlob(f.Digest) // release does not delete it
	return nil
}

// openFile opens the contents of a file.
func (l *Local) openFile(ctx context.Context, d store.Digest) (*store.OpenedBlob, error) {
	blob, err := l.Store.OpenBlob(ctx, d)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fault.New(fault.NotFound, "the contents with the SHA-256 %v are gone", d)
	}
	return blob, err
}

// receiveFile stores the contents that a request has. It ends when the client sends nothing for backupStall.
func (s *responder) receiveFile(w http.ResponseWriter, r *http.Request, digest string) error {
	f, err := uploadOf(r, digest)
	if err != nil {
		return err
	}
	body := &readRecorder{Reader: &deadlineReader{r.Body, http.NewResponseController(w)}}
	if err := s.local.putFile(r.Context(), admin.Blob{Digest: f.Digest, Size: f.Size}, body); err != nil {
		if body.err != nil {
			err = fault.Wrap(body.err, fault.Invalid, "the upload broke off before its end")
		}
		return err
	}
	return nil
}

// deadlineReader sets a deadline before each read.
type deadlineReader struct {
	io.Reader
	control *http.ResponseController
}

func (d *deadlineReader) Read(b []byte) (int, error) {
	if err := d.control.SetReadDeadline(clock.In(backupStall)); err != nil {
		return 0, err
	}
	n, err := d.Reader.Read(b)
	if err != nil { // what follows takes as long as it takes
		_ = d.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// sendFile answers with the contents of a file. The connection is closed when they end too early.
func (s *responder) sendFile(w http.ResponseWriter, r *http.Request, args []byte) error {
	var request admin.FileDigest
	if err := readJSON(args, &request); err != nil {
		return err
	}
	blob, err := s.local.openFile(r.Context(), request.Digest)
	if err != nil {
		return err
	}
	defer blob.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(blob.Size(), 10))
	out := &deadlineWriter{w: w, control: http.NewResponseController(w)}
	if _, err := io.Copy(out, io.NewSectionReader(blob, 0, blob.Size())); err != nil {
		return &sentError{err}
	}
	return nil
}
