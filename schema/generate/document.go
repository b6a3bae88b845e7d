package generate

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object that keeps the order of its members. Values are objects, lists,
// strings, booleans, ints, and raw JSON as jsontext.Value.
type object []member

type member struct {
	name  string
	value any
}

type list []any

func (o *object) add(name string, value any) { *o = append(*o, member{name, value}) }

// addText adds a member unless text is empty.
func (o *object) addText(name, text string) {
	if text != "" {
		o.add(name, text)
	}
}

func listOf[T any](values []T) list {
	all := make(list, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// text returns the object with indentation and a final newline.
func (o object) text() []byte {
	var out bytes.Buffer
	w := &writer{jsontext.NewEncoder(&out, jsontext.WithIndent("  "))}
	w.value(o)
	return out.Bytes()
}

type writer struct{ enc *jsontext.Encoder }

// token writes a token. The output is in memory and the order is valid, so it cannot fail.
func (w *writer) token(t jsontext.Token) {
	if err := w.enc.WriteToken(t); err != nil {
		panic("BUG: write a document: " + err.Error())
	}
}

func (w *writer) value(v any) {
	switch v := v.(type) {
	case object:
		w.token(jsontext.BeginObject)
		for _, m := range v {
			w.token(jsontext.String(m.name))
			w.value(m.value)
		}
		w.token(jsontext.EndObject)
	case list:
		w.token(jsontext.BeginArray)
		for _, elem := range v {
			w.value(elem)
		}
		w.token(jsontext.EndArray)
	case string:
		w.token(jsontext.String(v))
	case bool:
		w.token(jsontext.Bool(v))
	case int:
		w.token(jsontext.Int(int64(v)))
	case jsontext.Value:
		if err := w.enc.WriteValue(v); err != nil {
			panic("BUG: write a document: " + err.Error())
		}
	default:
		panic(fmt.Sprintf("BUG: document with a value of type %T", v))
	}
}
