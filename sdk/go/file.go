package runner

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"runner.example/sdk/go/internal/codec"
	"runner.example/sdk/go/internal/host"
)

// StoredFile is a file: the value of a field of type file, or one that the request has uploaded or made. A row gets it
// when it is inserted or updated with the file:
//
//	runner.Insert("Post", post{Title: "a view", Photo: &file.StoredFile})
//
// The other members of the row stay what the runner has: only the id counts then.
type StoredFile struct {
	ID string `json:"id"`
	// Name is a text for people, never a path.
	Name string `json:"name"`
	// Type is the media type without parameters. It is found from the bytes.
	Type string `json:"type"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// SHA256 is the digest of the bytes, in hexadecimal digits.
	SHA256 string `json:"sha256"`
}

// UploadedFile is a file of an Upload.
type UploadedFile struct {
	StoredFile
	// Field is the name of its field; empty for a body that is one file.
	Field string
	// Declared is the media type that the client has declared; empty: none.
	Declared string
}

// Upload is the body of a request on a route with `upload: on`. Its files are gone after the request unless a row that is
// committed has them.
type Upload struct {
	// Fields are the names and texts of the fields, in the order of the body.
	Fields []Pair
	Files  []UploadedFile
}

// Get gives the first text of that name; empty without one.
func (u *Upload) Get(name string) string {
	for _, f := range u.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// File gives the first file of a field, or nil. The name of a body that is one file is empty.
func (u *Upload) File(field string) *UploadedFile {
	for i := range u.Files {
		if u.Files[i].Field == field {
			return &u.Files[i]
		}
	}
	return nil
}

// Upload gives what the client has uploaded. On a route without `upload: on` it is an error.
func (c *Context) Upload() (*Upload, error) {
	var form struct {
		Fields [][]string `json:"fields"`
		Files  []struct {
			Field    string `json:"field"`
			ID       string `json:"id"`
			Name     string `json:"name"`
			Type     string `json:"type"`
			Size     int64  `json:"size"`
			SHA256   string `json:"sha256"`
			Declared string `json:"declared"`
		} `json:"files"`
	}
	if err := callHost(c.host, "request.form", struct{}{}, &form); err != nil {
		return nil, err
	}
	u := &Upload{}
	for _, f := range form.Fields {
		u.Fields = append(u.Fields, Pair{f[0], f[1]})
	}
	for _, f := range form.Files {
		u.Files = append(u.Files, UploadedFile{StoredFile{f.ID, f.Name, f.Type, f.Size, f.SHA256}, f.Field, f.Declared})
	}
	return u, nil
}

// How many bytes one operation reads and writes. What is written may be text whose characters JSON escapes with six bytes
// each, and the arguments of an operation have at most 2 MiB.
const (
	readPart  = 1 << 20
	writePart = 320 << 10
)

// CreateFile makes a file with these contents, of which one part at a time is in memory. The type is found from the bytes;
// mediaType names that of a text or of unknown bytes more closely, and may be empty. The file is gone after the request
// unless a row that is committed has it.
func (c *Context) CreateFile(name, mediaType string, contents io.Reader) (StoredFile, error) {
	args := map[string]any{"name": name}
	if mediaType != "" {
		args["type"] = mediaType
	}
	part := make([]byte, writePart)
	n, err := io.ReadFull(contents, part)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		args["data"] = octets(part[:n])
		var f StoredFile
		err := callHost(c.host, "file.create", args, &f)
		return f, err
	}
	if err != nil {
		return StoredFile{}, err
	}
	return c.writeFile(args, io.MultiReader(bytes.NewReader(bytes.Clone(part)), contents), part)
}

// writeFile makes a file of several parts.
func (c *Context) writeFile(args map[string]any, contents io.Reader, part []byte) (f StoredFile, err error) {
	var open struct {
		Writer int64 `json:"writer"`
	}
	if err := callHost(c.host, "file.open", args, &open); err != nil {
		return f, err
	}
	for {
		n, err := io.ReadFull(contents, part)
		if n > 0 {
			if err := callHost(c.host, "file.write", map[string]any{"writer": open.Writer, "data": octets(part[:n])}, nil); err != nil {
				return f, err
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return f, err
		}
	}
	err = callHost(c.host, "file.end", map[string]any{"writer": open.Writer}, &f)
	return f, err
}

// ReadFile reads all bytes of a file into memory.
func (c *Context) ReadFile(f StoredFile) ([]byte, error) { return io.ReadAll(c.OpenFile(f)) }

// OpenFile reads a file, of which one part at a time is in memory.
func (c *Context) OpenFile(f StoredFile) io.Reader {
	return &fileReader{host: c.host, id: f.ID, size: f.Size}
}

// fileReader reads a file in parts.
type fileReader struct {
	host     host.Host
	id       string
	at, size int64
	part     []byte // that was read from the host, and not yet from here
}

func (r *fileReader) Read(p []byte) (int, error) {
	if len(r.part) == 0 {
		if r.at >= r.size {
			return 0, io.EOF
		}
		var result struct {
			Data octets `json:"data"`
		}
		if err := callHost(r.host, "file.read", map[string]any{"id": r.id, "offset": r.at, "length": readPart}, &result); err != nil {
			return 0, err
		}
		if len(result.Data) == 0 {
			return 0, errors.New("the file ends early")
		}
		r.part, r.at = result.Data, r.at+int64(len(result.Data))
	}
	n := copy(p, r.part)
	r.part = r.part[n:]
	return n, nil
}

// SendOptions say how a file is sent. The zero value is the status 200, and what the runner finds right for the type.
type SendOptions struct {
	// Status of the answer; 0: 200.
	Status int
	// Disposition is "inline", which shows the file in the browser, or "attachment", which saves it. Empty: inline for
	// types that a browser shows without running them, such as pictures.
	Disposition string
	// Name replaces the name of the file; empty: it stays.
	Name string
	// Cache is the Cache-Control of the answer; empty: that of the route.
	Cache string
}

// SendFile answers with a file, or the part of it that the request asks for. Its bytes do not come to the handler. What the
// handler has written is committed first. Only the answer to a request can be a file.
func SendFile(f StoredFile, o SendOptions) Response {
	return Response{status: cmp.Or(o.Status, 200), body: sentFile{f.ID, o}}
}

// LinkOptions say what a signed link does. Expires is required.
type LinkOptions struct {
	// Expires is how long the link works: whole seconds, at most seven days.
	Expires time.Duration
	// Disposition and Name are as in SendOptions.
	Disposition, Name string
}

// SignFile makes a link to the file of a row, which works without credentials until it expires, for as long as the row has
// this file. The link is a path of this app, such as /_files/….
func (c *Context) SignFile(f StoredFile, o LinkOptions) (string, error) {
	args := map[string]any{"id": f.ID, "expires": seconds(o.Expires)}
	for name, value := range map[string]string{"disposition": o.Disposition, "name": o.Name} {
		if value != "" {
			args[name] = value
		}
	}
	var link struct {
		URL string `json:"url"`
	}
	err := callHost(c.host, "file.sign", args, &link)
	return link.URL, err
}

// sentFile is the body of an answer that is a file.
type sentFile struct {
	id      string
	options SendOptions
}

func (f sentFile) send(h host.Host, status int) error {
	args := map[string]any{"id": f.id, "status": status}
	for name, value := range map[string]string{"disposition": f.options.Disposition, "name": f.options.Name, "cache": f.options.Cache} {
		if value != "" {
			args[name] = value
		}
	}
	text, err := codec.Marshal(args)
	if err == nil {
		err = h.Call("file.send", text)
	}
	if err != nil {
		return unexpected{fmt.Errorf("answer with a file: %w", err)}
	}
	return nil
}
