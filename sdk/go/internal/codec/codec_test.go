package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/sdk/go/internal/codec"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the generated types, values and texts")

// Types with methods of their own.
type (
	byValue   struct{ N int }
	byPointer struct{ N int }
	textValue struct{ S string }
	refusing  struct{}
	zeroer    struct{ N int }
)

func (v byValue) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, ` {"v" : %d}`, v.N), nil }
func (v *byPointer) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"p":%d,"html":"<"}`, v.N), nil
}
func (v *byPointer) UnmarshalJSON(text []byte) error {
	v.N = len(text)
	return nil
}
func (v textValue) MarshalText() ([]byte, error)     { return []byte("<" + v.S + ">"), nil }
func (v *textValue) UnmarshalText(text []byte) error { v.S = string(text); return nil }
func (refusing) MarshalJSON() ([]byte, error)        { return nil, fmt.Errorf("refused") }
func (*refusing) UnmarshalJSON([]byte) error         { return fmt.Errorf("refused") }
func (z zeroer) IsZero() bool                        { return z.N == 7 }

type (
	text    string
	level   int8
	Inner   struct{ A, B int }
	hidden  struct{ C, D string }
	Deeper  struct{ Inner }
	pointed struct{ E int }

	embedding struct {
		Inner
		hidden
		B string
		F float64 `json:"f,omitempty"`
	}
	twice struct {
		Inner
		Deeper
		Other struct{ A int } `json:"other"`
	}
	annihilated struct {
		X Inner `json:"-"`
		Left
		Right
		Name string
	}
	Left  struct{ Same, L int }
	Right struct {
		Same, R int
		Tagged  int `json:"Name"`
	}
	embedsPointer struct {
		*pointed
		G int
	}
	tags struct {
		Plain    string
		Named    string `json:"named"`
		Dash     string `json:"-"`
		Comma    string `json:"-,"`
		Empty    string `json:",omitempty"`
		Invalid  string `json:"a\"b"`
		Umlaut   string `json:"größe"`
		HTML     string `json:"a<b"`
		private  string
		Int      int     `json:"int,string"`
		LongName float64 `json:"a name that is longer than two words of eight bytes"`
	}
	omitting struct {
		S  string         `json:"s,omitempty"`
		I  int            `json:"i,omitempty"`
		F  float64        `json:"f,omitempty"`
		B  bool           `json:"b,omitempty"`
		P  *int           `json:"p,omitempty"`
		L  []int          `json:"l,omitempty"`
		M  map[string]any `json:"m,omitempty"`
		A  any            `json:"a,omitempty"`
		R  [2]int         `json:"r,omitempty"`
		E  [0]int         `json:"e,omitempty"`
		T  time.Time      `json:"t,omitempty"`
		N  Inner          `json:"n,omitempty"`
		ZS string         `json:"zs,omitzero"`
		ZL []int          `json:"zl,omitzero"`
		ZN Inner          `json:"zn,omitzero"`
		ZT time.Time      `json:"zt,omitzero"`
		ZM map[string]int `json:"zm,omitempty,omitzero"`
	}
	asks struct {
		Z zeroer `json:"z,omitzero"`
	}
	folds struct {
		Lower string `json:"kind"`
		Upper string `json:"KIND"`
		K     int
	}
	recursive struct {
		Name string      `json:"name"`
		Next *recursive  `json:"next,omitempty"`
		All  []recursive `json:"all"`
		Any  any         `json:"any"`
	}
	methods struct {
		V  byValue     `json:"v"`
		P  byPointer   `json:"p"`
		PP *byPointer  `json:"pp"`
		VS []byPointer `json:"vs"`
		T  textValue   `json:"t"`
		TP *textValue  `json:"tp"`
		M  map[textValue]int
		R  json.RawMessage `json:"raw"`
		RP *json.RawMessage
		N  json.Number
		At time.Time
		AP *time.Time
	}
	refuses struct {
		A int
		R refusing
	}
	one   struct{ P *int }
	array [1]*int
	ring  struct{ Next *ring }
	basic struct {
		S   string
		T   text
		B   bool
		I   int
		I8  int8
		I16 int16
		I32 int32
		I64 int64
		U   uint
		U8  uint8
		U16 uint16
		U32 uint32
		U64 uint64
		L   level
		F   float64
		F32 float32
		Bin []byte
		Any any
		MS  map[string]string
		MA  map[string]any
		MI  map[string]int
		KI  map[int]string
		PS  *string
		PPS **string
		LL  [][]string
		LP  []*int
		LA  []any
		Arr [3]int
	}
)

var types = []reflect.Type{
	reflect.TypeFor[basic](), reflect.TypeFor[embedding](), reflect.TypeFor[twice](), reflect.TypeFor[annihilated](),
	reflect.TypeFor[embedsPointer](), reflect.TypeFor[tags](), reflect.TypeFor[omitting](), reflect.TypeFor[asks](),
	reflect.TypeFor[folds](), reflect.TypeFor[recursive](), reflect.TypeFor[methods](), reflect.TypeFor[refuses](),
	reflect.TypeFor[one](), reflect.TypeFor[array](), reflect.TypeFor[any](), reflect.TypeFor[[]basic](),
	reflect.TypeFor[map[string]basic](), reflect.TypeFor[map[string]*Inner](), reflect.TypeFor[[]any](),
	reflect.TypeFor[struct{}](), reflect.TypeFor[[]struct{}](), reflect.TypeFor[*[]*Inner](), reflect.TypeFor[map[string]byPointer](),
	reflect.TypeFor[byPointer](), reflect.TypeFor[textValue](), reflect.TypeFor[string](), reflect.TypeFor[json.RawMessage](),
}

// generator makes random types, values and texts.
type generator struct{ *rand.Rand }

func newGenerator(t *testing.T) *generator {
	t.Logf("go test -seed %d", *seed)
	return &generator{rand.New(rand.NewPCG(*seed, 1))}
}

// aType makes a struct of fields with tags, or takes a known one.
func (g *generator) aType(depth int) reflect.Type {
	if depth == 0 || g.IntN(4) == 0 {
		return types[g.IntN(len(types))]
	}
	switch g.IntN(6) {
	case 0:
		return reflect.SliceOf(g.aType(depth - 1))
	case 1:
		return reflect.PointerTo(g.aType(depth - 1))
	case 2:
		return reflect.MapOf(reflect.TypeFor[string](), g.aType(depth-1))
	}
	var fields []reflect.StructField
	for i := range g.IntN(8) {
		name := fmt.Sprintf("F%d%s", i, strings.Repeat("x", g.IntN(12)))
		tag := ""
		switch g.IntN(6) {
		case 0:
			tag = fmt.Sprintf(`json:"f%d"`, i)
		case 1:
			tag = fmt.Sprintf(`json:"f%d,omitempty"`, g.IntN(3))
		case 2:
			tag = `json:",omitzero"`
		case 3:
			tag = []string{`json:"-"`, `json:",string"`, `json:"é"`, `json:"SAME"`, `json:"same"`}[g.IntN(5)]
		}
		fields = append(fields, reflect.StructField{Name: name, Type: g.aType(depth - 1), Tag: reflect.StructTag(tag)})
	}
	return reflect.StructOf(fields)
}

var strs = []string{"", "a", "ab", "lamp", "a lamp", "seven77", "eight888", "nine99999", "a lamp of brass <b>", "&", "quote\"", "back\\slash",
	"\x00\x1f\x7f", "\b\f\n\r\t", "größe", "日本語", "\u2028\u2029", "\xff", "bad \xc3( utf", "\xed\xa0\x80", "😀 smile", "tail\xe2\x82", strings.Repeat("long ", 40), "12345678\x01"}

func (g *generator) text() string {
	s := strs[g.IntN(len(strs))]
	if g.IntN(3) == 0 {
		s += strs[g.IntN(len(strs))]
	}
	return s
}

var floats = []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 0.29, 12.5, 1e-6, 9.99e-7, 1e-7, 123456.789012, 999999999999999, 1e15, 1e20, 1e21, 1e22, 1.5e300, 5e-324, math.MaxFloat64, 0.30000000000000004, 4.35, 2.675, 1.005, 100, 1234567890123456, math.NaN(), math.Inf(1)}

func (g *generator) float() float64 {
	switch g.IntN(4) {
	case 0:
		return floats[g.IntN(len(floats)-g.IntN(2)*2)]
	case 1:
		return float64(g.IntN(2_000_000)-1_000_000) / math.Pow10(g.IntN(9))
	case 2:
		return math.Float64frombits(g.Uint64() &^ (1 << 62))
	}
	return float64(g.Int64N(1<<54)) / math.Pow10(g.IntN(18))
}

// fill fills a value.
func (g *generator) fill(v reflect.Value, depth int) {
	if depth <= 0 || g.IntN(8) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(g.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(g.Uint64()) >> g.IntN(64))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(g.Uint64() >> g.IntN(64))
	case reflect.Float32, reflect.Float64:
		f := g.float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			if g.IntN(10) > 0 {
				f = 0.5
			}
		}
		v.SetFloat(f)
	case reflect.String:
		if v.Type() == reflect.TypeFor[json.Number]() {
			v.SetString([]string{"1", "-0.50", "1e400", "12345678901234567890"}[g.IntN(4)])
			return
		}
		v.SetString(g.text())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		g.fill(v.Elem(), depth-1)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte([]string{`{"a": [1, "<"]}`, `null`, ` "x"`, `{`}[min(3, g.IntN(20))]))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		for range g.IntN(6) {
			item := reflect.New(v.Type().Elem()).Elem()
			g.fill(item, depth-1)
			v.Set(reflect.Append(v, item))
		}
	case reflect.Array:
		for i := range v.Len() {
			g.fill(v.Index(i), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range g.IntN(4) {
			key, item := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			g.fill(key, 2)
			g.fill(item, depth-1)
			v.SetMapIndex(key, item)
		}
	case reflect.Interface:
		item := reflect.New(g.aType(0)).Elem()
		if g.IntN(2) == 0 {
			item = reflect.ValueOf(any([]any{g.text(), g.float(), 12, true, map[string]any{g.text(): g.text()}, []string{g.text()}, map[string]string{g.text(): ""}}[g.IntN(7)]))
		} else {
			g.fill(item, depth-2)
		}
		if item.IsValid() && item.Type().AssignableTo(v.Type()) {
			v.Set(item)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(g.Int64N(300_000_000_000), g.Int64N(1e9)).In(time.FixedZone("", g.IntN(86400)/60*60))))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				g.fill(v.Field(i), depth-1)
			}
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// same compares values as their memory is, with NaN equal to itself.
func same(a, b any) bool {
	return reflect.DeepEqual(a, b) || fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b)
}

// compareRead reads a text with both.
func compareRead(t *testing.T, typ reflect.Type, text string, padded bool) {
	t.Helper()
	got, want := reflect.New(typ), reflect.New(typ)
	in := []byte(text)
	if padded {
		in = codec.Padded(len(text))
		copy(in, text)
	}
	gotErr := codec.Unmarshal(in, got.Interface())
	wantErr := json.Unmarshal([]byte(text), want.Interface())
	if message(gotErr) != message(wantErr) {
		t.Fatalf("%v of %s: error %v, want %v", typ, text, gotErr, wantErr)
	}
	if !same(got.Elem().Interface(), want.Elem().Interface()) {
		t.Fatalf("%v of %s:\ngot  %#v\nwant %#v", typ, text, got.Elem(), want.Elem())
	}
	if string(in) != text {
		t.Fatalf("%v of %s: the text changed to %s", typ, text, in)
	}
	if again := reflect.New(typ); !codec.Decode(in, again.Interface()) && !again.Elem().IsZero() {
		t.Fatalf("%v of %s: not read, and left %#v", typ, text, again.Elem())
	}
}

// compareWritten writes a value with both.
func compareWritten(t *testing.T, v any) string {
	t.Helper()
	const before = "before"
	got, gotErr := codec.Append([]byte(before), v)
	want, wantErr := json.Marshal(v)
	if message(gotErr) != message(wantErr) {
		t.Fatalf("%T %#v: error %v, want %v", v, v, gotErr, wantErr)
	}
	if gotErr == nil && string(got) != before+string(want) {
		t.Fatalf("%T %#v:\ngot  %s\nwant %s", v, v, got, want)
	}
	return string(want)
}

// change returns a text with a small change.
func (g *generator) change(text string) string {
	b := []byte(text)
	for range g.IntN(3) {
		if len(b) == 0 {
			break
		}
		at := g.IntN(len(b))
		switch g.IntN(7) {
		case 0:
			b = slices.Delete(b, at, at+1)
		case 1:
			b[at] = byte(g.Uint32())
		case 2:
			b = slices.Insert(b, at, []byte([]string{" ", "\n\t", `"`, `\`, "null", "1", "e5", ".5", "-", `\u00e9`, `\ud83d\ude00`, `\ud83d`, "{}", "[]", ",", "}", "]", `,"A":1`}[g.IntN(18)])...)
		case 3:
			b = b[:at]
		case 4:
			b = bytes.ToLower(b)
		case 5:
			b = bytes.ReplaceAll(b, []byte{b[at]}, []byte(g.text()))
		case 6:
			b = bytes.Replace(b, []byte(":"), []byte(" :\r\n"), -1)
		}
	}
	return string(b)
}

func TestResultsAreThoseOfEncodingJSON(t *testing.T) {
	g := newGenerator(t)
	rounds := 4_000
	if testing.Short() {
		rounds = 500
	}
	for range rounds {
		typ := g.aType(g.IntN(3))
		v := reflect.New(typ)
		g.fill(v.Elem(), 5)
		text := compareWritten(t, v.Elem().Interface())
		compareWritten(t, v.Interface())
		compareRead(t, typ, text, g.IntN(2) == 0)
		compareRead(t, typ, g.change(text), g.IntN(2) == 0)
		compareRead(t, g.aType(0), text, true)
	}
}

func TestSpecialTexts(t *testing.T) {
	for _, text := range []string{
		``, ` `, `null`, ` null `, `{}`, `[]`, `{} {}`, `{"a"`, `{"S":"a","S":"b"}`, `{"s":"x","S":"y"}`, `{"KIND":"a","kind":"b","Kind":"c"}`,
		`{"K":1}`, `{"K":2}`, `{"I":1.0}`, `{"I":1e3}`, `{"I":-0}`, `{"I":00}`, `{"I":9223372036854775807}`, `{"I":9223372036854775808}`, `{"I":-9223372036854775808}`,
		`{"I8":127}`, `{"I8":128}`, `{"I8":-128}`, `{"I8":-129}`, `{"U":-1}`, `{"U8":256}`, `{"U64":18446744073709551615}`, `{"U64":18446744073709551616}`,
		`{"F":-0}`, `{"F":1e400}`, `{"F":.5}`, `{"F":5.}`, `{"F":1e}`, `{"F":0.1e-7}`, `{"F":123456789012345678901234567890}`, `{"F":9007199254740993}`, `{"F":0.000000000000000000000001}`,
		`{"F32":3.4028236e38}`, `{"F32":1e39}`, `{"F32":0.1}`, `{"S":1}`, `{"S":null,"I":null,"B":null,"Any":null,"LL":null,"PS":null,"MA":null,"Bin":null}`,
		`{"B":truE}`, `{"B":tru`, `{"B":falsy}`, `{"B":true}`, `{"B":false}`, `{"unknown":{"a":[1,{"b":"\u0041\n"}],"c":null}}`, `{"unknown":{"a":[1,}}`, `{"unknown":tru}`,
		`{"S":"\u00e9\ud83d\ude00\ud83dx\udc00\/\b"}`, `{"S":"\x"}`, `{"S":"\u12G4"}`, `{"S":"` + "\n" + `"}`, `{"S":"` + "\xff\xc3" + `"}`, `{"\u0053":"escaped name"}`, `{"gr` + "\xc3\xb6" + `ße":"x","GRÖSSE":"y"}`,
		`{"LL":[["a"],[],null,["b","c"]]}`, `{"LP":[1,null,3]}`, `{"Arr":[1,2,3,4]}`, `{"Bin":"YWJj"}`, `{"Bin":"%"}`, `{"MA":{"a":1,"a":[]}}`, `{"MS":{"a":"b","c":null}}`, `{"MI":{"a":1}}`,
		`{"all":[{"name":"a","next":{"name":"b","all":[]}},{"any":{"x":[1,2,{"y":null}]}}],"next":{"next":{"next":{}}}}`,
		strings.Repeat("[", 70) + strings.Repeat("]", 70), strings.Repeat(`{"next":`, 40) + "{}" + strings.Repeat("}", 40), strings.Repeat(`{"any":`, 63) + "{}" + strings.Repeat("}", 63), strings.Repeat("[", 10001),
		`"x"`, `12`, `1 2`, `[1,2`, `[1 2]`, `[,]`, `[1,]`, `{"a":1,}`, `{,}`, `{"a":}`, `{"a" 1}`, "\ufeff{}", `{"S":"a"}x`,
	} {
		for _, typ := range types {
			compareRead(t, typ, text, false)
			compareRead(t, typ, text, true)
		}
	}
}

func TestSpecialValues(t *testing.T) {
	n := 5
	loop := &ring{}
	loop.Next = loop
	var list any
	for range 30 {
		list = []any{list}
	}
	for _, v := range []any{
		nil, 1, "a", 1.5, true, []int(nil), []int{}, map[string]any(nil), map[string]any{}, (*int)(nil), &n, one{&n}, one{}, &one{&n}, array{&n}, any(one{&n}),
		map[string]any{"b": 1, "a": one{&n}, "c": array{&n}, "d": &n, "e": []byte("x"), "f": loop, "g": nil}, loop, list, func() {}, make(chan int), complex(1, 1),
		math.NaN(), math.Inf(-1), math.Copysign(0, -1), json.RawMessage(`{"a": 1}`), json.RawMessage(nil), json.RawMessage(`{`), json.Number(""), json.Number("x"),
		byPointer{1}, &byPointer{1}, []byPointer{{1}}, map[string]byPointer{"a": {1}}, struct{ P byPointer }{byPointer{1}}, &struct{ P byPointer }{byPointer{1}},
		refusing{}, []refusing{{}}, time.Time{}, time.Unix(1<<60, 0), asks{zeroer{7}}, asks{zeroer{0}}, struct{ A, B any }{one{&n}, "x"}, [][]any{{nil, n, &n}},
	} {
		compareWritten(t, v)
	}
	if got, err := codec.Marshal(floats[:1]); err != nil || string(got) != "[0]" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestEveryShortDecimalIsWrittenAsItIsRead(t *testing.T) {
	g := newGenerator(t)
	for range 100_000 {
		compareWritten(t, g.float0())
	}
}

func (g *generator) float0() any {
	f := g.float()
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0.0
	}
	if g.IntN(4) == 0 {
		return float32(f / 2)
	}
	return f
}

// Existing content of a value is kept where encoding/json keeps it.
func TestItReadsIntoValuesThatAreNotEmpty(t *testing.T) {
	for _, text := range []string{`{"A":1}`, `{"A":null}`, `{"A":"x"}`, `{"A"`, `{}`} {
		got, want := Inner{A: 5, B: 6}, Inner{A: 5, B: 6}
		gotErr, wantErr := codec.Unmarshal([]byte(text), &got), json.Unmarshal([]byte(text), &want)
		if got != want || message(gotErr) != message(wantErr) {
			t.Errorf("%s: %v %v, want %v %v", text, got, gotErr, want, wantErr)
		}
	}
	got, want := []Inner{{1, 2}, {3, 4}}, []Inner{{1, 2}, {3, 4}}
	const text = `[{"A":9},{"B":8},{}]`
	if err := codec.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &want); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The usual types of handlers are read by a plan, and not by encoding/json.
func TestUsualTypesHaveAPlan(t *testing.T) {
	type order struct {
		ID    string    `json:"id"`
		At    time.Time `json:"at"`
		Tags  []string  `json:"tags,omitempty"`
		Lines []struct {
			Item  string   `json:"item"`
			Price *float64 `json:"price"`
		} `json:"lines"`
		Meta map[string]any `json:"meta"`
	}
	var orders []order
	const text = `[{"id":"größe","at":"2026-01-02T03:04:05Z","tags":["a"],"lines":[{"item":"x\n","price":1e2},{"price":null}],"meta":{"a":[1]},"more":[{}]}]`
	if !codec.Decode([]byte(text), &orders) || len(orders) != 1 || *orders[0].Lines[0].Price != 100 {
		t.Errorf("not read: %+v", orders)
	}
}

func TestAnEnvelopeIsReadIntoItsValues(t *testing.T) {
	type result struct {
		Rows  codec.Into `json:"rows"`
		Next  string     `json:"next"`
		Count int        `json:"count"`
	}
	for text, want := range map[string]string{
		`{"rows":[{"A":1},{"A":2}],"next":"n","count":2}`: `[{1 0} {2 0}] {1 0} true "n" 2`,
		`{"count":1,"rows":[],"next":null}`:               `[] {0 0} false "" 1`,
		`{"rows":[{"A":1,"A":2}, {"A":3}], "other":[1]}`:  `[{2 0} {3 0}] {2 0} true "" 0`,
		`{"next":"\n"}`:        `[] {0 0} false "\n" 0`,
		`{"rows":[{"A":"x"}]}`: "",
		`{"rows":{}}`:          "",
		`{"rows":[{}`:          "",
	} {
		var list []Inner
		var first Inner
		all, one, none := result{Rows: codec.Into{Dest: &list}}, result{Rows: codec.Into{Dest: &first, One: true}}, result{}
		err := errors.Join(codec.Envelope([]byte(text), &all), codec.Envelope([]byte(text), &one))
		if want == "" {
			if err == nil {
				t.Errorf("%s: no error", text)
			}
			continue
		}
		got := fmt.Sprintf("%v %v %v %q %d", list, first, one.Rows.Found, all.Next, all.Count)
		if err != nil || got != want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", text, got, err, want)
		}
		if err := codec.Envelope([]byte(text), &none); err != nil || none.Next != all.Next || none.Count != all.Count {
			t.Errorf("%s without a value: %+v, %v", text, none, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"S":"a","I":1,"F":0.5,"LL":[["x"]],"Any":{"a":[1]}}`, uint8(0))
	f.Add(`{"name":"\u00e9","all":[{}],"next":{}}`, uint8(9))
	f.Add(`[{"A":1e3,"B":-0}]`, uint8(15))
	f.Fuzz(func(t *testing.T, text string, typ uint8) {
		compareRead(t, types[int(typ)%len(types)], text, len(text)%2 == 0)
		var v any
		if json.Unmarshal([]byte(text), &v) == nil {
			compareWritten(t, v)
		}
	})
}

func FuzzWrite(f *testing.F) {
	f.Add("a", int64(1), 0.5, []byte("x"))
	f.Fuzz(func(t *testing.T, s string, i int64, x float64, b []byte) {
		v := basic{S: s, T: text(s), I: int(i), I8: int8(i), U64: uint64(i), F: x, F32: float32(x), Bin: b, MS: map[string]string{s: s}, Any: x, LL: [][]string{{s, s}}}
		compareWritten(t, v)
		compareWritten(t, []any{s, i, x, &v, b})
	})
}

func BenchmarkHundred(b *testing.B) {
	type row struct {
		ID    string  `json:"id"`
		Item  string  `json:"item"`
		Qty   int     `json:"qty"`
		Price float64 `json:"price"`
	}
	var rows []row
	for i := range 100 {
		rows = append(rows, row{fmt.Sprintf("o-%03d", i), "a lamp of brass", i, 12.5})
	}
	text, _ := json.Marshal(rows)
	b.Run("codec", func(b *testing.B) {
		for b.Loop() {
			var rows []row
			if !codec.Decode(text, &rows) {
				b.Fatal("not read")
			}
			if _, err := codec.Marshal(rows); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		for b.Loop() {
			var rows []row
			if err := json.Unmarshal(text, &rows); err != nil {
				b.Fatal(err)
			}
			if _, err := json.Marshal(rows); err != nil {
				b.Fatal(err)
			}
		}
	})
}
