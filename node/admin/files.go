package admin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"

	"runner.example/internal/fault"
	"runner.example/state/store"
)

// FileOfRow is a file of a row in a page or in a request.
type FileOfRow struct {
	// Index is the row's index, from 0.
	Index  int          `json:"index"`
	Field  string       `json:"field"`
	Digest store.Digest `json:"sha256"`
	Size   int64        `json:"size"` // bytes
}

// FilesOfRows are the files of rows, in the order of the rows.
type FilesOfRows struct {
	Files []FileOfRow `json:"files"`
}

// FilesToImport returns the files whose contents the rows of an import need. Rows that the import skips or that cannot be
// read have none.
func (c *Client) FilesToImport(ctx context.Context, request ImportRows) ([]FileOfRow, error) {
	found, err := ask(ctx, c, OpFilesToImport, request)
	return found.Files, err
}

// PutContents stores contents for an import that follows within an hour; name is what errors call them. Contents with another
// size or SHA-256 are refused with the code Invalid.
func (c *Client) PutContents(ctx context.Context, f Blob, name string, contents io.Reader) error {
	return c.transport.PutContents(ctx, f, name, contents)
}

// ReadContents writes the contents of a file of a row to w, as they arrive. After it returned nil they are complete, and have
// that SHA-256. The error is a fault with the code NotFound if no node has them.
func (c *Client) ReadContents(ctx context.Context, d store.Digest, w io.Writer) error {
	sum := sha256.New()
	if err := c.transport.ReadContents(ctx, d, io.MultiWriter(w, sum)); err != nil {
		return err
	}
	if got := store.Digest(sum.Sum(nil)); got != d {
		return fault.New(fault.Unavailable, "the contents that arrived have the SHA-256 %v, not %v: the file is damaged", got, d)
	}
	return nil
}

// PutContents sends the contents of a file of a row.
func (p *peer) PutContents(ctx context.Context, f Blob, name string, contents io.Reader) error {
	return p.upload(ctx, FilePath+f.Digest.String(), name, contents, f.Size)
}

// ReadContents copies the contents that a server sends.
func (p *peer) ReadContents(ctx context.Context, d store.Digest, w io.Writer) error {
	args, err := json.Marshal(FileDigest{d})
	if err != nil {
		return err
	}
	_, err = p.receive(ctx, OpReadFile.Name, args, w)
	return err
}

// receive copies the bytes that a stream answers with. The caller may read the trailers of the answer.
func (p *peer) receive(ctx context.Context, operation string, args []byte, w io.Writer) (*http.Response, error) {
	limit := limitSilence(ctx, p.answerTimeout)
	defer limit.stop()
	answer, err := p.send(limit, operation, args)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(limit.received(answer.Body), MaxMessage))
		return nil, refused(answer, body)
	}
	out := &errorRecorder{Writer: w}
	_, err = io.Copy(out, limit.received(answer.Body))
	switch {
	case out.err != nil:
		return nil, out.err
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, limit.explain(fault.Wrap(err, fault.Unavailable, "the server closed the connection during its answer"))
	}
	return answer, nil
}

// FileDigest names the contents of a file.
type FileDigest struct {
	Digest store.Digest `json:"sha256"`
}
