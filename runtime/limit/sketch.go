package limit

import (
	"math"
	"math/bits"
)

const (
	// rows is the number of cells that count a caller, one in each row.
	rows = 4
	// slicesPerWindow is the number of parts of a window; one more is kept, because the
	// window begins within one.
	slicesPerWindow = 3
	slicesKept      = slicesPerWindow + 1
	// columnsPerCounter limits the width of all sketches together, per counter.
	columnsPerCounter = 4
	// minColumns and maxColumns bound the width of one sketch.
	minColumns, maxColumns = 64, 1 << 16
)

// columnsFor returns the columns that all sketches of a shard may have together: a power of
// two.
func columnsFor(counters int) int {
	columns := (columnsPerCounter*counters + shards - 1) / shards
	return min(max(1<<bits.Len(uint(columns-1)), minColumns), maxColumns)
}

// sketch counts callers in a memory that does not grow with their number: a count-min
// sketch with conservative update (Cormode and Muthukrishnan, 2005; Estan and Varghese,
// 2002), one for each slice of the window. A caller has a cell in each row, found by its
// hash, which others may have as well. So what it says of a caller is never less than
// what was counted, and more only if others have all its cells.
//
//	cell:  slice of the newest count, 4 | counts of that slice and the three before, 8
//
// The lock of its shard guards it.
type sketch struct {
	pool  *pool
	shard uint8
	width int64 // of a slice, in nanoseconds
	mask  uint64
	cells []cell // row after row
	now   int64  // the newest slice so far
	until int64  // when nothing here counts any more
}

type cell struct {
	slice  uint32
	counts [slicesKept]uint16
}

// estimate is what a sketch knows about one caller.
type estimate struct {
	count  int
	counts [slicesKept]uint16 // of the newest slice first
	slice  int64              // the newest
	width  int64
	until  int64 // when nothing of it counts any more
}

func newSketch(p *pool, shard uint8, columns int) *sketch {
	return &sketch{
		pool: p, shard: shard, width: (p.limit.per + slicesPerWindow - 1) / slicesPerWindow,
		mask: uint64(columns - 1), cells: make([]cell, rows*columns),
	}
}

// advance moves to the slice of t. Late times belong to the newest slice.
func (s *sketch) advance(t int64) { s.now = max(s.now, t/s.width) }

// cell returns the caller's cell in a row.
func (s *sketch) cell(hash uint64, row int) *cell {
	// SplitMix64, whose bits do not depend on those that chose the shard.
	hash += uint64(row+1) * 0x9e3779b97f4a7c15
	hash = (hash ^ hash>>30) * 0xbf58476d1ce4e5b9
	hash = (hash ^ hash>>27) * 0x94d049bb133111eb
	hash ^= hash >> 31
	return &s.cells[uint64(row)*(s.mask+1)+hash&s.mask]
}

// at returns the counts of the cell as of a slice.
func (c *cell) at(slice uint32) (counts [slicesKept]uint16) {
	if passed := slice - c.slice; passed < slicesKept {
		copy(counts[passed:], c.counts[:])
	}
	return counts
}

// estimate returns at least what was counted for the caller.
func (s *sketch) estimate(hash uint64, t int64) estimate {
	s.advance(t)
	e := estimate{slice: s.now, width: s.width}
	for row := range rows {
		counts := s.cell(hash, row).at(uint32(s.now))
		for i, n := range counts {
			if row == 0 || n < e.counts[i] {
				e.counts[i] = n
			}
		}
	}
	for i, n := range e.counts {
		e.count += int(n)
		if n == math.MaxUint16 { // cells do not count further
			e.count = math.MaxInt32
		}
		if n > 0 && e.until == 0 {
			e.until = e.end(i)
		}
	}
	return e
}

// end returns when the slice i before the newest stops counting.
func (e *estimate) end(i int) int64 { return (e.slice - int64(i) + slicesKept) * e.width }

// wait returns the time after t until the oldest slice leaves or, if the limit is used up,
// enough slices for count.
func (e estimate) wait(count int, t int64) int64 {
	left, end := e.count, int64(0)
	for i := slicesKept - 1; i >= 0; i-- {
		if e.counts[i] == 0 {
			continue
		}
		left, end = left-int(e.counts[i]), e.end(i)
		if left < count {
			break
		}
	}
	return max(end-t, 0)
}

// add counts one request of the caller: the cells with its lowest count are increased.
func (s *sketch) add(hash uint64, t int64) {
	least := s.estimate(hash, t).counts[0]
	s.until = (s.now + slicesKept) * s.width
	if least == math.MaxUint16 {
		return
	}
	for row := range rows {
		c := s.cell(hash, row)
		c.counts, c.slice = c.at(uint32(s.now)), uint32(s.now)
		c.counts[0] = max(c.counts[0], least+1)
	}
}

// narrow reduces the sketch to at most that many columns. Two cells that become one keep
// the larger count, which is not less than that of each caller.
func (s *sketch) narrow(columns int) {
	for have := int(s.mask) + 1; have > columns; have = int(s.mask) + 1 {
		half := have / 2
		cells := make([]cell, rows*half)
		for i := range cells {
			row, column := i/half, i%half
			a, b := s.cells[row*have+column].at(uint32(s.now)), s.cells[row*have+column+half].at(uint32(s.now))
			cells[i].slice = uint32(s.now)
			for j := range a {
				cells[i].counts[j] = max(a[j], b[j])
			}
		}
		s.cells, s.mask = cells, uint64(half-1)
	}
}
