package entity

import "runner.example/schema"

// Entry is a value as it stands in the keys of an index.
func Entry(v schema.Value, desc bool) []byte { return appendEntry(nil, v, desc) }

// TextEntry cuts a text off the front of a key.
func TextEntry(key string) (text, rest string, ok bool) { return cutTextEntry(key) }

// rowOf is a table without keys, whose fields have the numbers.
func rowOf(numbers []uint32, missing schema.Value) *table {
	t := &table{id: -1, tenant: -1}
	for _, n := range numbers {
		t.slots = append(t.slots, slot{number: n, missing: missing})
	}
	t.setStored()
	return t
}

// EncodeRow is a stored row of the values of the fields with these numbers.
func EncodeRow(numbers []uint32, values []schema.Value) []byte {
	return rowOf(numbers, schema.Value{}).appendRow(nil, values)
}

// DecodeRow reads a stored row as one who knows the fields with these numbers.
func DecodeRow(numbers []uint32, missing schema.Value, raw string) ([]schema.Value, error) {
	values := make([]schema.Value, len(numbers))
	return values, rowOf(numbers, missing).decode(values, raw)
}
