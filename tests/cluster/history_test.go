package cluster_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// history is what clients know of transactions, and what was stored. Every stored transaction has
// changed a counter, and so took part in the order of commits.
type history struct {
	attempts []attempt
	stored   map[string]operation // by name
	counters map[string]int       // their values at the end
}

// check returns what is wrong.
func (h *history) check() (problems []string) {
	report := func(form string, args ...any) {
		if len(problems) < 20 {
			problems = append(problems, fmt.Sprintf(form, args...))
		}
	}
	known := map[string]attempt{}
	for _, a := range h.attempts {
		known[a.Name] = a
		done, ok := h.stored[a.Name]
		switch {
		case a.acknowledged && !ok:
			report("transaction %s was acknowledged, and is not stored", a.Name)
		case a.acknowledged && (!maps.Equal(done.read, a.read) || !maps.Equal(done.written, a.written)):
			report("transaction %s was acknowledged with %v and is stored with %v", a.Name, a.operation, done)
		case a.refused && ok:
			report("transaction %s was refused, and is stored", a.Name)
		}
	}
	writers := map[string]map[int]string{} // by counter and version
	for name := range h.counters {
		writers[name] = map[int]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(h.stored)) {
		if _, ok := known[name]; !ok {
			report("operation %s is stored, and no client has sent it", name)
		}
		for counter, version := range h.stored[name].written {
			if other, ok := writers[counter][version]; ok {
				report("transactions %s and %s have both set %s to %d", other, name, counter, version)
			}
			writers[counter][version] = name
		}
	}
	for counter, n := range h.counters {
		if len(writers[counter]) != n {
			report("counter %s is %d after %d stored transactions", counter, n, len(writers[counter]))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	if cycle := h.cycle(known, writers); cycle != "" {
		report("the transactions have no serial order: %s", cycle)
	}
	for counter := range h.counters {
		if problem := h.linearizable(counter, porcupineTime); problem != "" {
			report("the history of counter %s %s", counter, problem)
		}
	}
	return problems
}

// cycle looks for a cycle in the order of transactions: by the versions of counters, and because one was
// acknowledged before the other began. It returns "" if there is none.
func (h *history) cycle(known map[string]attempt, writers map[string]map[int]string) string {
	// The nodes of the graph are transactions, and then a chain of the moments of acknowledgements: a
	// transaction is before the moment of its own, and after the last moment before it began.
	names := slices.Sorted(maps.Keys(h.stored))
	index := map[string]int{}
	for i, name := range names {
		index[name] = i
	}
	var moments []attempt
	for _, name := range names {
		if a := known[name]; a.acknowledged {
			moments = append(moments, a)
		}
	}
	slices.SortFunc(moments, func(a, b attempt) int { return int(a.ended - b.ended) })
	after := make([][]int, len(names)+len(moments))
	add := func(from, to int) { after[from] = append(after[from], to) }
	for i, a := range moments {
		add(index[a.Name], len(names)+i)
		if i > 0 {
			add(len(names)+i-1, len(names)+i)
		}
	}
	for i, name := range names {
		last, _ := slices.BinarySearchFunc(moments, known[name].began, func(a attempt, began time.Duration) int { return int(a.ended - began) })
		if last > 0 {
			add(len(names)+last-1, i)
		}
		done := h.stored[name]
		for counter, version := range done.written {
			if next, ok := writers[counter][version+1]; ok {
				add(i, index[next])
			}
		}
		for counter, version := range done.read {
			if writer, ok := writers[counter][version]; ok {
				add(index[writer], i)
			}
			if next, ok := writers[counter][version+1]; ok && next != name {
				add(i, index[next])
			}
		}
	}
	// A search in depth without recursion: a node is entered, and left after all that follow it.
	const entered, left = 1, 2
	state := make([]int, len(after))
	for start := range after {
		if state[start] != 0 {
			continue
		}
		path, tried := []int{start}, []int{0}
		state[start] = entered
		for len(path) > 0 {
			top := len(path) - 1
			at := path[top]
			if tried[top] == len(after[at]) {
				state[at] = left
				path, tried = path[:top], tried[:top]
				continue
			}
			next := after[at][tried[top]]
			tried[top]++
			switch state[next] {
			case entered:
				text := ""
				for _, i := range path[slices.Index(path, next):] {
					if i < len(names) {
						text += fmt.Sprintf("%s %v, ", names[i], h.stored[names[i]])
					}
				}
				return text
			case 0:
				state[next] = entered
				path, tried = append(path, next), append(tried, 0)
			}
		}
	}
	return ""
}

// porcupineTime limits the check of one counter.
const porcupineTime = time.Minute

// linearizable checks one counter alone: transactions that add one to it and return its value, and
// transactions that read it. It returns what is wrong, or "". A check that does not end is wrong too.
func (h *history) linearizable(counter string, limit time.Duration) (problem string) {
	type call struct {
		write bool
		value int
	}
	var events []porcupine.Operation
	for _, a := range h.attempts {
		done, ok := h.stored[a.Name]
		if !ok {
			continue
		}
		c := call{write: true, value: done.written[counter]}
		if c.value == 0 {
			read, ok := done.read[counter]
			if !ok {
				continue
			}
			c = call{value: read}
		}
		e := porcupine.Operation{ClientId: len(events), Input: c.write, Call: int64(a.began), Output: c.value, Return: int64(a.ended)}
		if !a.acknowledged {
			e.Return = math.MaxInt64 // it may have been committed any time later
		}
		events = append(events, e)
	}
	model := porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, write, value any) (bool, any) {
			if write.(bool) {
				return value.(int) == state.(int)+1, value
			}
			return value.(int) == state.(int), state
		},
	}
	switch porcupine.CheckOperationsTimeout(model, events, limit) {
	case porcupine.Ok:
		return ""
	case porcupine.Illegal:
		return "is not linearizable"
	}
	return fmt.Sprintf("was not checked: %d operations are too many for %s; run the load for less time, or with more counters", len(events), limit)
}

// The checks of histories find each kind of fault.
func TestTheChecksOfHistoriesFindFaults(t *testing.T) {
	at := func(name string, began, ended int, read, written versions) attempt {
		return attempt{order: order{Name: name}, began: time.Duration(began), ended: time.Duration(ended), acknowledged: true, operation: operation{read, written}}
	}
	for name, row := range map[string]struct {
		attempts []attempt
		change   func(*history)
		right    bool
	}{
		"right": {attempts: []attempt{
			at("1", 0, 10, nil, versions{"a": 1}), at("2", 5, 20, versions{"a": 1}, versions{"b": 1}), at("3", 5, 30, versions{"b": 1}, versions{"a": 2}),
		}, right: true},
		"lost": {attempts: []attempt{at("1", 0, 10, nil, versions{"a": 1})}, change: func(h *history) { delete(h.stored, "1"); h.counters["a"] = 0 }},
		"of nobody": {attempts: []attempt{at("1", 0, 10, nil, versions{"a": 1})}, change: func(h *history) {
			h.stored["2"] = operation{nil, versions{"a": 2}}
			h.counters["a"] = 2
		}},
		"changed":       {attempts: []attempt{at("1", 0, 10, nil, versions{"a": 1})}, change: func(h *history) { h.stored["1"] = operation{versions{"b": 0}, versions{"a": 1}} }},
		"twice":         {attempts: []attempt{at("1", 0, 10, nil, versions{"a": 1}), at("2", 0, 10, nil, versions{"a": 1})}},
		"applied twice": {attempts: []attempt{at("1", 0, 10, nil, versions{"a": 1})}, change: func(h *history) { h.counters["a"] = 2 }},
		"write skew": {attempts: []attempt{
			at("1", 0, 10, versions{"b": 0}, versions{"a": 1}), at("2", 0, 10, versions{"a": 0}, versions{"b": 1}),
		}},
		"against the time": {attempts: []attempt{
			at("1", 0, 10, nil, versions{"a": 1, "b": 1}), at("2", 20, 30, versions{"b": 0}, versions{"c": 1}),
		}},
		"of several, against the time": {attempts: []attempt{
			at("1", 0, 10, nil, versions{"a": 1}), at("2", 20, 30, nil, versions{"b": 1}), at("3", 0, 40, versions{"a": 0, "b": 1}, versions{"c": 1}),
		}},
	} {
		h := &history{attempts: row.attempts, stored: map[string]operation{}, counters: map[string]int{"a": 0, "b": 0, "c": 0}}
		for _, a := range row.attempts {
			h.stored[a.Name] = a.operation
			for counter, version := range a.written {
				h.counters[counter] = max(h.counters[counter], version)
			}
		}
		if row.change != nil {
			row.change(h)
		}
		if problems := h.check(); (len(problems) == 0) != row.right {
			t.Errorf("%s: %q", name, problems)
		}
	}
	h := &history{attempts: []attempt{at("1", 0, 10, nil, versions{"a": 1}), at("2", 20, 30, versions{"a": 0}, versions{"b": 1})}, stored: map[string]operation{}}
	for _, a := range h.attempts {
		h.stored[a.Name] = a.operation
	}
	if got := h.linearizable("a", time.Minute); got != "is not linearizable" {
		t.Errorf("a stale read: %q", got)
	}
	if got := h.linearizable("b", time.Minute); got != "" {
		t.Errorf("a write: %q", got)
	}
	many := &history{stored: map[string]operation{}} // all at the same time, and one value is missing
	for i := range 30 {
		a := at(fmt.Sprint(i), 0, 10, versions{"a": 1}, versions{"b": 1})
		if i == 0 {
			a.operation = operation{nil, versions{"a": 1}}
		}
		many.attempts = append(many.attempts, a)
		many.stored[a.Name] = a.operation
	}
	late := at("late", 20, 30, versions{"a": 0}, versions{"b": 1})
	many.attempts, many.stored["late"] = append(many.attempts, late), late.operation
	if got := many.linearizable("a", 50*time.Millisecond); !strings.HasPrefix(got, "was not checked: 31 operations") {
		t.Errorf("a check that does not end: %q", got)
	}
}
