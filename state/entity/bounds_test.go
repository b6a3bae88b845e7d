package entity_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"runner.example/internal/cost"
	"runner.example/internal/fault"
	"runner.example/state/entity"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// untypedFixture is a store whose schema declares no entities.
func untypedFixture(t *testing.T) *fixture {
	return newFixture(t, `app a
apiKeys { scopes: { s: @system("s") { @grant read, insert, update on Free } } }
auth { session cookie {} }
routes("/", auth: session, rateLimit: none) { GET /x -> x }`)
}

// wide returns an object with the members from up to to, which is excluded.
func wide(from, to int, value string) string {
	var members []string
	for i := from; i < to; i++ {
		members = append(members, fmt.Sprintf(`"k%04d":%s`, i, value))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func TestUntypedRowsHaveAtMostAThousandFields(t *testing.T) {
	h := untypedFixture(t)
	h.must(reader, "insert", `{"into":"Free","values":`+wide(0, 1000, "1")+`}`)
	h.fails(reader, fault.Invalid, "insert", `{"into":"Free","values":[`+wide(0, 1001, "1")+`]}`, "values[0]", "1000")
	h.fails(reader, fault.Invalid, "update", `{"in":"Free","set":`+wide(0, 1001, "1")+`,"where":[]}`, "set", "1000")
	h.fails(reader, fault.TooLarge, "update", `{"in":"Free","set":{"more":1},"where":[]}`, "1000")
	h.must(reader, "update", `{"in":"Free","set":`+wide(0, 1000, "2")+`,"where":[]}`)
	row := h.rows(reader, `{"from":"Free"}`)[0]
	if len(row) != 1001 || row["k0000"] != 2.0 || row["k0999"] != 2.0 {
		t.Errorf("%d members, %v", len(row), row["k0999"])
	}
}

func TestARowHasAtMostOneMebibyte(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	t.Run("untyped", func(t *testing.T) {
		h := untypedFixture(t)
		text := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
		largest := 0 // length of the longest text that fits beside the row's other bytes
		for n := layout.MaxRowBytes; largest == 0; n-- {
			if _, err := h.do(reader, "insert", `{"into":"Free","values":{"a":`+text(n)+`}}`); err == nil {
				largest = n
			} else if fault.CodeOf(err) != fault.TooLarge || n < layout.MaxRowBytes-200 {
				t.Fatalf("%d bytes: %v", n, err)
			}
		}
		h.must(reader, "update", `{"in":"Free","set":{"a":`+text(largest/2)+`},"where":[]}`)
		h.must(reader, "update", `{"in":"Free","set":{"b":`+text(largest-largest/2-12)+`},"where":[]}`)
		h.fails(reader, fault.TooLarge, "update", `{"in":"Free","set":{"c":"another"},"where":[]}`, "1048576")
	})
	t.Run("declared", func(t *testing.T) {
		h := newFixture(t, `app a
entity Note { id: id a: text(0..2000000) b: text(0..2000000) = "" @@allow read, write when true }
apiKeys { scopes: { s: @system("s") { @grant read, write on Note } } }
auth { session cookie {} }
routes("/", auth: session, rateLimit: none) { GET /x -> x }`)
		half, whole := strings.Repeat("x", layout.MaxRowBytes/2), strings.Repeat("x", layout.MaxRowBytes)
		h.must(reader, "insert", `{"into":"Note","values":{"a":"`+whole[100:]+`"}}`)
		h.fails(reader, fault.TooLarge, "insert", `{"into":"Note","values":{"a":"`+whole+`"}}`, "the Note has 10485", "1048576")
		h.must(reader, "update", `{"in":"Note","set":{"a":"`+half+`"},"where":[]}`)
		h.fails(reader, fault.TooLarge, "update", `{"in":"Note","set":{"b":"`+half+`"},"where":[]}`, "the Note has 10485")
	})
}

func TestAnUpdateKeepsTheOrderOfFieldsAndAppendsNewOnes(t *testing.T) {
	h := untypedFixture(t)
	h.must(reader, "insert", `{"into":"Free","values":{"b":1,"a":2,"c":3}}`)
	h.must(reader, "update", `{"in":"Free","set":{"z":9,"a":{"x":[1,"y"]},"y":8,"b":null},"where":[]}`)
	got := h.must(reader, "query", `{"from":"Free","select":["b","a","c","z","y","none"]}`)
	if want := `{"rows":[{"b":null,"a":{"x":[1,"y"]},"c":3,"z":9,"y":8}],"nextCursor":null}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	whole := h.must(reader, "query", `{"from":"Free"}`)
	if !strings.Contains(whole, `"b":null,"a":{"x":[1,"y"]},"c":3,"z":9,"y":8}`) {
		t.Errorf("unchanged: %s", whole)
	}
}

func TestSelectsAndOrdersHaveLimits(t *testing.T) {
	h := untypedFixture(t)
	h.must(reader, "insert", `{"into":"Free","values":`+wide(0, 300, "1")+`}`)
	names := func(n int) []string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("k%04d", n-1-i))
		}
		return list
	}
	selecting := func(n int) string {
		text, _ := json.Marshal(map[string]any{"from": "Free", "select": names(n)})
		return string(text)
	}
	ordering := func(n int) string {
		var terms [][]string
		for _, name := range names(n) {
			terms = append(terms, []string{name, "asc"})
		}
		text, _ := json.Marshal(map[string]any{"from": "Free", "orderBy": terms})
		return string(text)
	}
	if row := h.rows(reader, selecting(256))[0]; len(row) != 256 {
		t.Errorf("of 256 selected: %d", len(row))
	}
	h.fails(reader, fault.Invalid, "query", selecting(257), "select: at most 256 fields are allowed")
	h.must(reader, "query", ordering(16))
	h.fails(reader, fault.Invalid, "query", ordering(17), "orderBy: at most 16 fields are allowed")
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf(`["k%04d","=",1]`, i))
	}
	if got := h.must(reader, "count", `{"from":"Free","where":[`+strings.Join(many, ",")+`]}`); got != `{"count":1}` {
		t.Errorf("with 200 conditions: %s", got)
	}
}

// lives ends after a number of calls.
type lives struct {
	context.Context
	left int
}

func (l *lives) Err() error {
	if l.left--; l.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestAnOperationEndsAtTheFirstRowAfterItsDeadline(t *testing.T) {
	typed := newFixture(t, `app a
entity E {
  id: id
  n: int
  @@allow all to session when exists(E where n == 1000) or n < 1000
}
auth { session cookie {} }
routes("/", auth: session, rateLimit: none) { GET /x -> x }`)
	for name, h := range map[string]*fixture{"E": typed, "Free": untypedFixture(t)} {
		var rows []string
		for i := range 60 {
			rows = append(rows, fmt.Sprintf(`{"n":%d}`, i))
		}
		values := `[` + strings.Join(rows, ",") + `]`
		h.must(reader, "insert", `{"into":"`+name+`","values":`+values+`}`)
		for op, args := range map[string]string{
			"query":  `{"from":"` + name + `","where":[["n","=",-1]]}`,
			"count":  `{"from":"` + name + `"}`,
			"insert": `{"into":"` + name + `","values":` + values + `}`,
			"update": `{"in":"` + name + `","set":{"n":1},"where":[]}`,
			"delete": `{"from":"` + name + `","where":[]}`,
		} {
			const left = 20
			_, err := h.store.Update(context.Background(), func(tx *store.Tx) error {
				var a entity.Access
				a.Reset(h.model, tx, reader, 100_000)
				a.Context = &lives{context.Background(), left}
				err := a.Do(op, []byte(args), new(entity.Result))
				if a.Touched() > left+1 {
					t.Errorf("%s of %s touched %d rows after its time", op, name, a.Touched()-left)
				}
				return err
			})
			if f := fault.Of(err); err == nil || f.Code != fault.Deadline {
				t.Errorf("%s of %s: %v", op, name, err)
			}
		}
		if got := h.must(reader, "count", `{"from":"`+name+`"}`); got != `{"count":60}` {
			t.Errorf("then %s has %s", name, got)
		}
	}
}

// A long text is searched in parts: a match across two parts is found.
func TestContainsFindsTextAcrossParts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out by -short")
	}
	h := untypedFixture(t)
	for _, at := range []int{65_500, 65_535, 65_536, 65_537, 131_071, 131_072, 199_000} {
		for _, length := range []int{1, 2, 40, 900} {
			text := strings.Repeat("-", at) + strings.Repeat("x", length) + strings.Repeat("-", 200_000-at-length)
			h.must(reader, "insert", `{"into":"Free","values":{"t":"`+text+`"}}`)
			where := func(part string) string { return `{"from":"Free","where":[["t","contains","` + part + `"]]}` }
			if got := h.must(reader, "count", where("-"+strings.Repeat("x", length)+"-")); got != `{"count":1}` {
				t.Errorf("%d characters at %d: %s", length, at, got)
			}
			if got := h.must(reader, "count", where(strings.Repeat("x", length+1))); got != `{"count":0}` {
				t.Errorf("more than %d characters at %d: %s", length, at, got)
			}
			h.must(reader, "update", `{"in":"Free","set":{"t":""},"where":[]}`)
		}
	}
	long := strings.Repeat("a", 90_000)
	h.must(reader, "insert", `{"into":"Free","values":{"t":"`+strings.Repeat("a", 60_000)+"b"+long+`"}}`)
	if got := h.must(reader, "count", `{"from":"Free","where":[["t","contains","b`+long+`"]]}`); got != `{"count":1}` {
		t.Errorf("a part of 90 kB: %s", got)
	}
}

// An operation ends when its meter fails, and checks the meter before it has computed for
// long.
func TestAnOperationEndsWithItsMeter(t *testing.T) {
	h := untypedFixture(t)
	text := strings.Repeat("a", 200_000)
	for range 3 {
		h.must(reader, "insert", `{"into":"Free","values":{"t":"`+text+`"}}`)
	}
	over := errors.New("over")
	for _, last := range []int{1, 10, 100} {
		looks := 0
		var work cost.Meter
		work.Reset(func() error {
			if looks++; looks == last {
				return over
			}
			return nil
		})
		_, err := h.store.Update(context.Background(), func(tx *store.Tx) error {
			var a entity.Access
			a.Reset(h.model, tx, reader, 100_000)
			a.Work = &work
			return a.Do("count", []byte(`{"from":"Free","where":[["or"`+strings.Repeat(`,["not",["t","contains","a"]],["t","contains","b"]`, 100)+`]]}`), new(entity.Result))
		})
		if fault.CodeOf(err) != fault.Deadline || !errors.Is(err, over) || looks != last {
			t.Errorf("after %d checks of %d: %v", looks, last, err)
		}
	}
}
