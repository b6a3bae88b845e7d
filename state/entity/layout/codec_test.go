package layout_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"runner.example/schema"
	"runner.example/state/entity/layout"
)

// genValue returns a value of one column, which may be null. kind is its kind; decimals
// have two places.
func genValue(kind schema.ValueKind) *rapid.Generator[schema.Value] {
	return rapid.Custom(func(t *rapid.T) schema.Value {
		if rapid.IntRange(0, 9).Draw(t, "null") == 0 {
			return schema.Value{}
		}
		switch kind {
		case schema.KindBool:
			return schema.BoolValue(rapid.Bool().Draw(t, "bool"))
		case schema.KindInt:
			return schema.IntValue(rapid.Int64Range(-1<<53, 1<<53).Draw(t, "int"))
		case schema.KindFloat:
			return schema.FloatValue(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "float"))
		case schema.KindDecimal:
			return genDecimal(t)
		case schema.KindText:
			return schema.TextValue(rapid.StringOf(rapid.SampledFrom([]rune("a\x00\x01\x02bé\U0001F600\u007f"))).Draw(t, "text"))
		case schema.KindTime:
			return schema.TimeValue(rapid.Int64Range(-1<<45, 1<<45).Draw(t, "time"))
		case schema.KindDate:
			return schema.DateValue(rapid.Int64Range(-1<<20, 1<<20).Draw(t, "date"))
		case schema.KindDuration:
			return schema.DurationValue(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "duration"))
		case schema.KindBytes:
			return schema.BytesValue(string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
		case schema.KindFile:
			return schema.FileValue(schema.File{
				ID: "01j9zzzzzzzzzzzzzzzzzzzzza", Name: rapid.StringMatching(`[aé]{1,100}`).Draw(t, "name"),
				Type: rapid.SampledFrom([]string{"a/b", strings.Repeat("t", 255)}).Draw(t, "type"),
				Size: rapid.Int64Range(0, 1<<53-1).Draw(t, "size"), SHA256: [32]byte{byte(rapid.IntRange(0, 255).Draw(t, "digest"))},
			})
		case schema.KindJSON:
			return schema.JSONValue(rapid.SampledFrom([]string{`{}`, `[1,2]`, `{"a":null}`}).Draw(t, "json"))
		}
		return schema.ListValue(rapid.SliceOfN(genValue(rapid.SampledFrom(scalarKinds).Draw(t, "of")), 0, 5).Draw(t, "list"))
	})
}

func genDecimal(t *rapid.T) schema.Value {
	whole := strings.TrimLeft(rapid.StringMatching(`[0-9]{1,36}`).Draw(t, "whole"), "0")
	if whole == "" {
		whole = "0"
	}
	digits := whole + "." + rapid.StringMatching(`[0-9]{2}`).Draw(t, "places")
	if rapid.Bool().Draw(t, "negative") && strings.Trim(digits, "0.") != "" {
		digits = "-" + digits
	}
	return schema.DecimalValue(digits)
}

// indexedKinds are the kinds that an index may have.
var indexedKinds = []schema.ValueKind{
	schema.KindBool, schema.KindInt, schema.KindFloat, schema.KindDecimal, schema.KindText,
	schema.KindTime, schema.KindDate, schema.KindDuration,
}

var scalarKinds = append([]schema.ValueKind{schema.KindBytes, schema.KindJSON, schema.KindFile}, indexedKinds...)

func sign(n int) int { return max(-1, min(1, n)) }

// wantOrder is the order of two values of one column, null first.
func wantOrder(a, b schema.Value) int {
	if a.IsNull() || b.IsNull() {
		return sign(btoi(b.IsNull()) - btoi(a.IsNull()))
	}
	order, _ := a.Compare(b)
	return order
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func checkEntries(t interface {
	Helper()
	Errorf(string, ...any)
}, a, b schema.Value) {
	t.Helper()
	for _, desc := range []bool{false, true} {
		x, y := layout.Entry(a, desc), layout.Entry(b, desc)
		want := wantOrder(a, b)
		if desc {
			want = -want
		}
		if got := bytes.Compare(x, y); got != want {
			t.Errorf("%v, %v, desc %v: the keys %x and %x compare as %d, the values as %d", a, b, desc, x, y, got, want)
		}
		if want != 0 && (bytes.HasPrefix(x, y) || bytes.HasPrefix(y, x)) {
			t.Errorf("%v, %v, desc %v: one of the keys %x and %x is a prefix of the other", a, b, desc, x, y)
		}
	}
}

func TestKeysAreOrderedLikeTheirValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(indexedKinds).Draw(t, "kind")
		checkEntries(t, genValue(kind).Draw(t, "a"), genValue(kind).Draw(t, "b"))
	})
}

func FuzzKeysOfTexts(f *testing.F) {
	f.Add("", "\x00")
	f.Add("a", "a\x00\xff")
	f.Add("a\x00\x01", "a")
	f.Fuzz(func(t *testing.T, a, b string) {
		checkEntries(t, schema.TextValue(a), schema.TextValue(b))
		key := layout.Entry(schema.TextValue(a), false)
		text, rest, ok := layout.TextEntry(string(key[1:]) + b)
		if !ok || text != a || rest != b {
			t.Errorf("%q and %q come back as %q, %q, %v", a, b, text, rest, ok)
		}
		if text, rest, ok := layout.TextEntry(b); ok && len(text)+len(rest) > len(b)-2 { // whatever it is
			t.Errorf("%q holds %q and %q", b, text, rest)
		}
	})
}

func FuzzKeysOfNumbers(f *testing.F) {
	f.Add(0.0, math.Copysign(0, -1), int64(0), int64(-1))
	f.Add(math.MaxFloat64, -math.SmallestNonzeroFloat64, int64(math.MaxInt64), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, x, y float64, n, m int64) {
		checkEntries(t, schema.IntValue(n), schema.IntValue(m))
		if x-x == 0 && y-y == 0 { // both finite
			checkEntries(t, schema.FloatValue(x), schema.FloatValue(y))
		}
	})
}

func sameRow(a, b []schema.Value) bool {
	for i := range a {
		if a[i].Kind() != b[i].Kind() || !a[i].Equal(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

func TestAStoredRowIsDecodedUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := append([]schema.ValueKind{schema.KindList}, scalarKinds...)
		n := rapid.IntRange(0, 12).Draw(t, "fields")
		numbers, values := make([]uint32, n), make([]schema.Value, n)
		for i := range n {
			numbers[i] = uint32(1 + (i*7)%n + i*(btoi(n%7 == 0))*n) // in any order, without duplicates
			values[i] = genValue(rapid.SampledFrom(kinds).Draw(t, "kind")).Draw(t, "value")
		}
		raw := string(layout.EncodeRow(numbers, values))
		got, err := layout.DecodeRow(numbers, schema.Value{}, raw)
		if err != nil || !sameRow(got, values) {
			t.Fatalf("%v comes back as %v (%v)", values, got, err)
		}
		// A model with more fields finds them missing; a model with fewer fields skips the
		// others.
		missing := schema.TextValue("missing")
		more, err := layout.DecodeRow(append(numbers[:n:n], 1000), missing, raw)
		if err != nil || !sameRow(more, append(values[:n:n], missing)) {
			t.Fatalf("with a field more: %v (%v)", more, err)
		}
		fewer, err := layout.DecodeRow(numbers[:n/2], missing, raw)
		if err != nil || !sameRow(fewer, values[:n/2]) {
			t.Fatalf("with fewer fields: %v (%v)", fewer, err)
		}
	})
}

func FuzzDamagedRows(f *testing.F) {
	f.Add(string(layout.EncodeRow([]uint32{1, 2, 3}, []schema.Value{
		schema.TextValue("a"), schema.ListValue([]schema.Value{schema.IntValue(1), {}}), schema.FloatValue(1.5),
	})))
	f.Add("\x01\x1b\xff\xff\xff\xff\x0f")
	f.Fuzz(func(t *testing.T, raw string) {
		numbers := []uint32{1, 2, 3, 40}
		values, err := layout.DecodeRow(numbers, schema.Value{}, raw)
		if err != nil {
			return
		}
		again, err := layout.DecodeRow(numbers, schema.Value{}, string(layout.EncodeRow(numbers, values)))
		if err != nil || !sameRow(values, again) {
			t.Errorf("%v comes back as %v (%v)", values, again, err)
		}
	})
}

// A row is written under a model with some of the fields: the others stay as they are stored.
func TestAStoredRowCarriesKeptFields(t *testing.T) {
	kinds := append([]schema.ValueKind{schema.KindList}, scalarKinds...)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "fields")
		var all, declared, kept []uint32
		var before, after, changes []schema.Value
		for i := range n {
			number := uint32(1 + 3*i)
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			value := genValue(kind).Draw(t, "value")
			all, before = append(all, number), append(before, value)
			if rapid.Bool().Draw(t, "kept") {
				kept = append(kept, number)
			} else {
				value = genValue(kind).Draw(t, "new value")
				declared, changes = append(declared, number), append(changes, value)
			}
			after = append(after, value)
		}
		raw := layout.ChangeRow(declared, kept, changes, string(layout.EncodeRow(all, before)))
		if want := layout.EncodeRow(all, after); !bytes.Equal(raw, want) {
			t.Errorf("%v with %v at %v is\n%x, want\n%x", before, changes, declared, raw, want)
		}
		if raw := layout.ChangeRow(declared, kept, changes, ""); !bytes.Equal(raw, layout.EncodeRow(declared, changes)) {
			t.Errorf("a new row with %v at %v is %x", changes, declared, raw)
		}
	})
}

func TestARowWithoutAFieldHasAllOthers(t *testing.T) {
	values := []schema.Value{
		schema.TextValue("id"), schema.TextValue("a text"), schema.IntValue(-7), {}, schema.BoolValue(true), schema.FloatValue(1.5),
		schema.ListValue([]schema.Value{schema.TextValue("x"), schema.IntValue(3)}), schema.JSONValue(`{"a":1}`),
	}
	slots := make([]layout.Slot, len(values))
	for i := range slots {
		slots[i].Number = uint32(i*i + 1) // some numbers take two bytes
	}
	full := &layout.Table{ID: 0, Tenant: -1}
	full.SetSlots(slots, nil)
	raw := string(full.AppendRow(nil, values, ""))
	for gone := 1; gone < len(slots); gone++ {
		rest, ok, err := layout.WithoutField(raw, slots[gone].Number)
		if err != nil || !ok {
			t.Fatalf("field %d: %v, %v", gone, ok, err)
		}
		some, kept := slices.Clone(slots), slices.Clone(values)
		some, kept = slices.Delete(some, gone, gone+1), slices.Delete(kept, gone, gone+1)
		table := &layout.Table{ID: 0, Tenant: -1}
		table.SetSlots(some, nil)
		if want := string(table.AppendRow(nil, kept, "")); string(rest) != want {
			t.Errorf("field %d: %q, want %q", gone, rest, want)
		}
		if _, ok, err := layout.WithoutField(string(rest), slots[gone].Number); ok || err != nil {
			t.Errorf("field %d again: %v, %v", gone, ok, err)
		}
	}
	for n := range len(raw) { // a damaged row is reported, or it was cut between two fields
		rest, ok, err := layout.WithoutField(raw[:n], slots[1].Number)
		if err != nil && (ok || rest != nil) {
			t.Errorf("cut at %d: %q, %v", n, rest, err)
		}
	}
	if _, _, err := layout.WithoutField("", 1); !errors.Is(err, layout.ErrDamaged) {
		t.Errorf("an empty row: %v", err)
	}
}
