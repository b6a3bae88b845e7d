package layout

import "runner.example/schema"

// Entry is a value as it stands in the keys of an index.
func Entry(v schema.Value, desc bool) []byte { return AppendEntry(nil, v, desc) }

// TextEntry cuts a text off the front of a key.
func TextEntry(key string) (text, rest string, ok bool) { return cutTextEntry(key) }

// tableOf returns a table without keys, whose fields have the numbers.
func tableOf(numbers []uint32, missing schema.Value) *Table {
	t := &Table{ID: -1, Tenant: -1}
	var slots []Slot
	for _, n := range numbers {
		slots = append(slots, Slot{Number: n, Missing: missing})
	}
	t.SetSlots(slots)
	return t
}

// EncodeRow is a stored row of the values of the fields with these numbers.
func EncodeRow(numbers []uint32, values []schema.Value) []byte {
	return tableOf(numbers, schema.Value{}).AppendRow(nil, values)
}

// DecodeRow reads a stored row as one who knows the fields with these numbers.
func DecodeRow(numbers []uint32, missing schema.Value, raw string) ([]schema.Value, error) {
	values := make([]schema.Value, len(numbers))
	return values, tableOf(numbers, missing).decode(values, raw)
}
