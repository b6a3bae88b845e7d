package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// ErrFormat means that an entry, or its record, has a format that this version does not know.
var ErrFormat = errors.New("a newer runner wrote it: install that one")

var errLayout = errors.New("the bytes are not an entry")

// Decode reads what Encode returned. The entry keeps b. It accepts only canonical bytes: the
// entry encodes to b. The error matches ErrFormat if the format is unknown.
func Decode(b []byte) (*Entry, error) {
	if len(b) == 0 {
		return nil, errLayout
	}
	at := slices.IndexFunc(formats, func(f format) bool { return f.id == b[0] })
	if newest := formats[len(formats)-1].id; at < 0 && b[0] > newest {
		return nil, fmt.Errorf("%w: it has format %d, and this version reads up to %d", ErrFormat, b[0], newest)
	}
	if at < 0 {
		return nil, errLayout
	}
	f, body := formats[at], b[1:]
	if f.open != nil {
		var ok bool
		if body, ok = f.open(body); !ok {
			return nil, errLayout
		}
	}
	d := decoder{rest: body}
	e := &Entry{Level: f.since, ID: ID{Proposer: d.number(), Batch: d.number()}, Base: Seq(d.number())}
	for n := d.number(); n > 0 && !d.failed; n-- {
		e.Proposals = append(e.Proposals, d.proposal())
	}
	if d.failed || len(d.rest) > 0 {
		return nil, errLayout
	}
	return e, nil
}

// decoder reads values in order. After one that is not valid it has failed, and the following
// are zero.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) proposal() *Proposal {
	p := &Proposal{Snapshot: Seq(d.number())}
	for n := d.number(); n > 0 && !d.failed; n-- {
		p.Reads = append(p.Reads, string(d.bytes()))
	}
	for n := d.number(); n > 0 && !d.failed; n-- {
		lo := d.bytes()
		hi, _ := d.optional()
		p.Spans = append(p.Spans, Span{lo, hi})
	}
	last := ""
	for n := d.number(); n > 0 && !d.failed; n-- {
		w := Write{Key: string(d.bytes())}
		var present bool
		w.Value, present = d.optional()
		w.Deleted = !present
		if w.Key <= last {
			d.fail()
		}
		last = w.Key
		p.Writes = append(p.Writes, w)
	}
	return p
}

func (d *decoder) fail() {
	d.failed, d.rest = true, nil
}

// number reads a varint of the least possible length.
func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || size > 1 && d.rest[size-1] == 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) bytes() []byte { return d.take(d.number()) }

// optional reads bytes that may be absent.
func (d *decoder) optional() (b []byte, present bool) {
	n := d.number()
	if n == 0 {
		return nil, false
	}
	return d.take(n - 1), true
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}
