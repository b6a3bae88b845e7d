package work

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

type sale struct {
	customer string
	amount   int
}

func sales() (all []sale) {
	next := random()
	for range 5000 {
		all = append(all, sale{fmt.Sprintf("customer-%d", next(1000)), next(10000)})
	}
	return all
}

// Total is the sum of one customer's sales.
type Total struct {
	Customer string `json:"customer"`
	Count    int    `json:"count"`
	Sum      int    `json:"sum"`
}

// Totals are the first totals by two orders.
type Totals struct {
	Customers int      `json:"customers"`
	Names     []*Total `json:"names"`
	Sums      []*Total `json:"sums"`
}

// Group sums records by a key and sorts the sums.
func Group() Totals {
	totals := map[string]*Total{}
	for _, s := range sales() {
		total := totals[s.customer]
		if total == nil {
			total = &Total{Customer: s.customer}
			totals[s.customer] = total
		}
		total.Count++
		total.Sum += s.amount
	}
	byName := func(a, b *Total) int { return strings.Compare(a.Customer, b.Customer) }
	bySum := func(a, b *Total) int { return cmp.Or(cmp.Compare(b.Sum, a.Sum), byName(a, b)) }
	names := slices.SortedFunc(maps.Values(totals), byName)
	sums := slices.SortedFunc(maps.Values(totals), bySum)
	return Totals{len(totals), names[:10], sums[:10]}
}
