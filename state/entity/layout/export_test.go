package layout

import "runner.example/schema"

// Entry is a value as stored in the keys of an index.
func Entry(v schema.Value, desc bool) []byte { return AppendEntry(nil, v, desc) }

// TextEntry decodes a text at the start of a key.
func TextEntry(key string) (text, rest string, ok bool) { return cutTextEntry(key) }

// tableOf returns a table without keys, whose fields have the numbers.
func tableOf(numbers []uint32, missing schema.Value, kept ...uint32) *Table {
	t := &Table{ID: -1, Tenant: -1}
	var slots []Slot
	for _, n := range numbers {
		slots = append(slots, Slot{Number: n, Missing: missing})
	}
	t.SetSlots(slots, kept)
	return t
}

// EncodeRow returns a stored row with these values, for fields with these numbers.
func EncodeRow(numbers []uint32, values []schema.Value) []byte {
	return tableOf(numbers, schema.Value{}).AppendRow(nil, values, "")
}

// ChangeRow returns a stored row with other values for fields with these numbers.
func ChangeRow(numbers, kept []uint32, values []schema.Value, before string) []byte {
	return tableOf(numbers, schema.Value{}, kept...).AppendRow(nil, values, before)
}

// DecodeRow decodes a stored row for a model that has fields with these numbers.
func DecodeRow(numbers []uint32, missing schema.Value, raw string) ([]schema.Value, error) {
	values := make([]schema.Value, len(numbers))
	return values, tableOf(numbers, missing).decode(values, raw)
}
