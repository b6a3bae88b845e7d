package runtime

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"runner.example/hostabi/abi"
	"runner.example/internal/cost"
	"runner.example/schema"
)

// readQuery checks a query against its type and appends it to dst as the JSON object that the
// handler reads: with numbers, lists and defaults, which are those of the time now.
func readQuery(dst []byte, query *schema.ObjectType, pairs []abi.Pair, now time.Time, m *cost.Meter) ([]byte, error) {
	object, wrong := queryObject(query, pairs)
	wrong = append(query.Check(object, m), wrong...)
	if m.Err() != nil {
		return dst, m.Err()
	}
	if len(wrong) > 0 {
		return dst, newInputError(wrong, "query does not match type %s; see errors", query.Name)
	}
	dst, err := query.Fill(dst, object, now, m)
	if m.Err() != nil {
		return dst, m.Err()
	}
	return dst, err
}

// queryObject returns a query as a JSON object, and an error for each value that is given
// twice. A list has each value of its name.
func queryObject(query *schema.ObjectType, pairs []abi.Pair) (object []byte, wrong []schema.FieldError) {
	object = append(object, '{')
	for i, p := range pairs {
		name := string(p.Name)
		at := slices.IndexFunc(query.Fields, func(f *schema.Field) bool { return f.Name == name })
		list := at >= 0 && query.Fields[at].Type.List
		if slices.ContainsFunc(pairs[:i], func(q abi.Pair) bool { return string(q.Name) == name }) {
			if at >= 0 && !list {
				wrong = append(wrong, schema.FieldError{Field: name, Message: "must not be given twice"})
			}
			continue
		}
		if len(object) > 1 {
			object = append(object, ',')
		}
		object = append(appendString(object, name), ':')
		switch {
		case at < 0:
			object = appendString(object, string(p.Value))
		case list:
			object = appendList(object, &query.Fields[at].Type, name, pairs[i:])
		default:
			object = appendQueryValue(object, &query.Fields[at].Type, string(p.Value))
		}
	}
	return append(object, '}'), wrong
}

// appendList appends the values of one name.
func appendList(dst []byte, t *schema.Type, name string, pairs []abi.Pair) []byte {
	dst = append(dst, '[')
	for i, p := range pairs {
		if string(p.Name) != name {
			continue
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQueryValue(dst, t, string(p.Value))
	}
	return append(dst, ']')
}

// appendQueryValue appends a value: numbers and booleans as such, anything else as a string.
// JSON may have white space around a number; a query may not, because + is a space there.
func appendQueryValue(dst []byte, t *schema.Type, value string) []byte {
	switch t.Kind {
	case schema.Int, schema.Float, schema.Duration, schema.Bool:
		raw := jsontext.Value(value)
		if k := raw.Kind(); (k == '0' || k == 't' || k == 'f') && raw.IsValid() && strings.TrimSpace(value) == value {
			return append(dst, value...)
		}
	}
	return appendString(dst, value)
}

func appendString(dst []byte, text string) []byte {
	dst, err := jsontext.AppendQuote(dst, text)
	if err != nil { // front refuses queries that are not UTF-8
		panic(fmt.Sprintf("BUG: quote %q: %v", text, err))
	}
	return dst
}
