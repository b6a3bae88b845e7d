package hostabi

import (
	"encoding/json"
	"net/url"
	"slices"

	"runner.example/hostabi/abi"
	"runner.example/internal/fault"
	"runner.example/schema"
)

// Form is the body of a request on a route with upload: a form, or one file. Its files are stored, and stay so while the
// request lasts.
type Form struct {
	// Fields are the names and texts of the fields, in the order of the body.
	Fields [][2]string
	Files  []FormFile
}

// FormFile is a file of a Form.
type FormFile struct {
	schema.File
	// Field is the name of its field; empty for a body that is one file.
	Field string
	// Declared is the media type that the client has declared; empty: none. The Type is found from the bytes.
	Declared string
}

// asBody gives the request the fields of the form as its body, whose own one is not in memory.
func (f *Form) asBody(r *abi.Request) {
	fields := url.Values{}
	for _, field := range f.Fields {
		fields.Add(field[0], field[1])
	}
	r.Body = []byte(fields.Encode())
	r.Headers = []abi.Pair{{Name: []byte("content-type"), Value: []byte("application/x-www-form-urlencoded")}}
}

// hasFile reports whether the JSON of a value names a file of the form.
func (f *Form) hasFile(value []byte) bool {
	var named struct {
		ID string `json:"id"`
	}
	return json.Unmarshal(value, &named) == nil && slices.ContainsFunc(f.Files, func(file FormFile) bool { return file.ID == named.ID })
}

var errNoForm = fault.New(fault.Denied, "the route has no `upload: on`: its body is not a form")

// requestForm returns the form of the request.
func requestForm(c *Call, args *arguments) (any, error) {
	if err := args.end(); err != nil {
		return nil, err
	}
	if c.Form == nil {
		return nil, errNoForm
	}
	type file struct {
		Field string `json:"field"`
		fileObject
		Declared string `json:"declared"`
	}
	out := struct {
		Fields [][2]string `json:"fields"`
		Files  []file      `json:"files"`
	}{c.Form.Fields, []file{}}
	if out.Fields == nil {
		out.Fields = [][2]string{}
	}
	for i := range c.Form.Files {
		f := &c.Form.Files[i]
		out.Files = append(out.Files, file{f.Field, objectOf(f.File), f.Declared})
	}
	text, err := json.Marshal(out)
	if err == nil {
		err = args.meter.Spend(len(text))
	}
	return json.RawMessage(text), err
}
