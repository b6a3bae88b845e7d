package datadir

import "sync"

// pin keeps a blob, or one that is about to be stored.
type pin struct {
	count int
	// own: the blob was not there before its first pin, and all that stored it since did so with PutPinned.
	own bool
	// there: the blob is there, and counts in Blobs.used.
	there bool
}

// Pin keeps a blob until release is called: it is not removed. Release of the last pin removes the blob if PutPinned
// stored it and nothing else has: named says whether something names it by now. It may be nil: then the blob stays.
// Release does nothing when it is called again.
func (b *Blobs) Pin(d Digest) (release func(named Named)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pinLocked(d, true)
	var once sync.Once
	return func(named Named) { once.Do(func() { b.unpin(d, named) }) }
}

// pin pins a blob that is about to be stored. own: by PutPinned.
func (b *Blobs) pin(d Digest, own bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pinLocked(d, own)
}

// pinLocked adds a pin. The first one says who owns the blob, and others that store it with own unset say that nobody does.
func (b *Blobs) pinLocked(d Digest, own bool) {
	p := b.pins[d]
	if p == nil {
		if b.pins == nil {
			b.pins = make(map[Digest]*pin)
		}
		_, err := b.backend().info(d)
		p = &pin{own: err != nil, there: err == nil}
		b.pins[d] = p
	}
	p.count++
	p.own = p.own && own
}

// Adopt says that a blob may have an owner that Named does not know: the release of a pin does not remove it. The blob need
// not be there.
func (b *Blobs) Adopt(d Digest) {
	b.pin(d, false)
	b.unpin(d, nil)
}

// unpin releases a pin. An error leaves the blob to a later removal.
func (b *Blobs) unpin(d Digest, named Named) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pins[d]
	if p.count--; p.count > 0 {
		return
	}
	delete(b.pins, d)
	if p.own && named != nil {
		_, _ = b.removeLocked(d, named)
	}
}
