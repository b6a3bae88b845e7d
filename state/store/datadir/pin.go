package datadir

import "sync"

// pins are the pins of one blob, which may not be stored yet.
type pins struct {
	count int
	// life is provisional if the blob did not exist before its first pin, and was then stored by PutPinned only.
	life lifetime
	// counted: Blobs.used has the size of the blob.
	counted bool
}

// Pin keeps a blob until release is called: until then it is not removed. If only PutPinned has stored the blob, the
// release of its last pin removes it, unless referenced reports true. With nil for referenced the blob stays. Further
// calls of release do nothing.
func (b *Blobs) Pin(d Digest) (release func(Referenced)) {
	b.pin(d, provisional) // a pin alone does not make a blob persistent
	var once sync.Once
	return func(referenced Referenced) { once.Do(func() { b.unpin(d, referenced) }) }
}

// pin adds a pin to a blob. Once it was pinned as persistent, it stays when its last pin is released.
func (b *Blobs) pin(d Digest, life lifetime) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pins[d]
	if p == nil {
		if b.pins == nil {
			b.pins = make(map[Digest]*pins)
		}
		p = &pins{life: provisional}
		if _, err := b.backend().info(d); err == nil {
			p.life, p.counted = persistent, true
		}
		b.pins[d] = p
	}
	p.count++
	if life == persistent {
		p.life = persistent
	}
}

// Adopt makes a blob persistent: something may refer to it that Referenced does not know. The blob may not exist yet.
func (b *Blobs) Adopt(d Digest) {
	b.pin(d, persistent)
	b.unpin(d, nil)
}

// unpin releases a pin. If the removal fails, the blob is left to a later Remove.
func (b *Blobs) unpin(d Digest, referenced Referenced) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pins[d]
	if p.count--; p.count > 0 {
		return
	}
	delete(b.pins, d)
	if p.life == provisional && referenced != nil {
		_, _ = b.removeLocked(d, referenced)
	}
}
