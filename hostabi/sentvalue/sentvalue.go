package sentvalue

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/hostabi/abi"
)

// In reports whether the JSON value is in the request: a parameter of the path or the query,
// a value in the body's JSON, or a field of the body's form.
func In(r *abi.Request, value jsontext.Value) bool {
	want, ok := newSentValue(value)
	if !ok {
		return false
	}
	for _, pairs := range [][]abi.Pair{r.Params, r.Query} {
		for i := range pairs {
			if want.isText(string(pairs[i].Value)) {
				return true
			}
		}
	}
	kind, params := contentType(r)
	switch {
	case kind == "application/x-www-form-urlencoded" && want.inQuery(string(r.Body)),
		kind == "multipart/form-data" && want.inParts(multipart.NewReader(bytes.NewReader(r.Body), params["boundary"])):
		return true
	}
	return want.inJSON(r.Body) // whatever the Content-Type is: curl sends JSON with the type of a form
}

// HasName reports whether the request contains the name, which is a JSON string. It may be a value, the name of a
// parameter or of a member of the body, or a word in a parameter, such as created in ?sort=-created,title.
func HasName(r *abi.Request, name jsontext.Value) bool {
	if In(r, name) {
		return true
	}
	want, ok := newSentValue(name)
	if !ok {
		return false
	}
	for _, pairs := range [][]abi.Pair{r.Params, r.Query} {
		for i := range pairs {
			if string(pairs[i].Name) == want.text || slices.Contains(strings.FieldsFunc(string(pairs[i].Value), betweenNames), want.text) {
				return true
			}
		}
	}
	kind, params := contentType(r)
	switch kind {
	case "application/x-www-form-urlencoded":
		values, _ := url.ParseQuery(string(r.Body))
		return values.Has(want.text)
	case "multipart/form-data":
		parts := multipart.NewReader(bytes.NewReader(r.Body), params["boundary"])
		for {
			part, err := parts.NextPart()
			if err != nil {
				return false
			}
			if part.FormName() == want.text {
				return true
			}
		}
	}
	return false
}

// betweenNames reports whether a character separates two names in a parameter.
func betweenNames(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }

func contentType(r *abi.Request) (string, map[string]string) {
	for i := range r.Headers {
		if strings.EqualFold(string(r.Headers[i].Name), "content-type") {
			kind, params, _ := mime.ParseMediaType(string(r.Headers[i].Value))
			return kind, params
		}
	}
	return "", nil
}

// sentValue is a value of a handler. The request may contain it in another notation.
type sentValue struct {
	kind   jsontext.Kind
	text   string  // of a string, or the JSON
	number float64 // of a number
}

func newSentValue(value jsontext.Value) (v sentValue, ok bool) {
	v.kind, v.text = value.Kind(), string(value)
	switch v.kind {
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		v.text = string(text)
		return v, err == nil
	case '0':
		number, err := strconv.ParseFloat(v.text, 64)
		v.number = number
		return v, err == nil
	case '{', '[':
		value = bytes.Clone(value)
		err := value.Canonicalize()
		v.text = string(value)
		return v, err == nil
	}
	return v, true
}

// isText reports whether the text stands for the value.
func (v sentValue) isText(text string) bool {
	if v.kind == '0' {
		return v.isNumber(strings.TrimSpace(text))
	}
	return text == v.text
}

func (v sentValue) isNumber(text string) bool {
	number, err := strconv.ParseFloat(text, 64)
	return err == nil && number == v.number
}

func (v sentValue) inQuery(text string) bool {
	values, _ := url.ParseQuery(text) // malformed pairs are left out
	for _, list := range values {
		for _, value := range list {
			if v.isText(value) {
				return true
			}
		}
	}
	return false
}

func (v sentValue) inParts(parts *multipart.Reader) bool {
	for {
		part, err := parts.NextPart()
		if err != nil {
			return false
		}
		if text, err := io.ReadAll(part); err == nil && part.FileName() == "" && v.isText(string(text)) {
			return true
		}
	}
}

func (v sentValue) inJSON(body jsontext.Value) bool {
	if v.kind == '{' || v.kind == '[' {
		body = bytes.Clone(body)
		return body.Canonicalize() == nil && bytes.Contains(body, []byte(v.text))
	}
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	for {
		token, err := dec.ReadToken()
		switch {
		case err != nil:
			return false
		case token.Kind() != v.kind:
		case v.kind == '0' && v.isNumber(token.String()), v.kind != '0' && token.String() == v.text:
			return true
		}
	}
}
