package pages

import (
	"bytes"
	"errors"
	"fmt"

	"runner.example/runtime/guard"
)

// Memory is the memory of one guest. One goroutine at a time may use it. The zero value has no addresses, and can
// only be released.
type Memory struct {
	bytes []byte
	store store
	guard *guard.Region
	image *Image

	size    uint64 // what the guest has
	high    uint64 // the largest size since the last restore
	reached uint64 // the largest size since pages were given back
	opened  uint64 // bytes that can be accessed
	tail    int64  // bytes of private pages behind the image

	searches int // restores that have looked for written pages
}

// Bytes returns all addresses of the memory. They are valid until Release; those beyond the size must not be used.
func (m *Memory) Bytes() []byte { return m.bytes }

// Size is how many bytes the guest has.
func (m *Memory) Size() uint64 { return m.size }

// High is the largest Size since the last restore.
func (m *Memory) High() uint64 { return m.high }

// Image returns the image; nil: the memory began as zeros, and cannot be restored.
func (m *Memory) Image() *Image { return m.image }

// Tail is how many bytes are in pages behind the image that are kept, as of the last restore.
func (m *Memory) Tail() int64 { return m.tail }

// Searches is how many restores have looked for written pages. Others knew which these were.
func (m *Memory) Searches() int { return m.searches }

// Known is how many pages the next restore copies, if no others are written.
func (m *Memory) Known() int { return m.store.known() }

// Guard returns the region of a guarded memory, else nil.
func (m *Memory) Guard() *guard.Region { return m.guard }

// Resize changes the size. Bytes that are new to the guest are zeros, if the memory was restored since the guest
// last had them. After an error nothing has changed.
func (m *Memory) Resize(size uint64) error {
	if size > m.opened {
		if err := m.open(size); err != nil {
			return err
		}
	}
	m.size, m.high, m.reached = size, max(m.high, size), max(m.reached, size)
	return nil
}

// open lets that many bytes be accessed, and no others.
func (m *Memory) open(size uint64) error {
	if size == m.opened {
		return nil
	}
	err := m.store.open(m.opened, size)
	if err == nil {
		m.opened = size
	}
	return err
}

// Attach has the memory begin with an image of its size. Until then it must have only zeros, or the image's bytes.
func (m *Memory) Attach(im *Image) error {
	if m.size != im.Size() {
		return fmt.Errorf("attach an image of %d bytes to a memory of %d", im.Size(), m.size)
	}
	m.image, m.high, m.reached = im, m.size, max(m.reached, m.size)
	return m.store.attach(m)
}

// Restore makes all bytes those of the image again, and zeros behind it, and returns how many pages it copied. The
// size must be the image's. A Native system releases pages if more than keep are private. faulted is false if no page was
// written that was not written before the last restore, too.
func (m *Memory) Restore(keep int, faulted bool) (pages int, err error) {
	if m.store.review(m) {
		return 0, m.Trim()
	}
	if m.high > m.image.Size() { // all private pages behind the image are counted again
		m.high, m.tail = m.reached, 0
		if err := m.open(max(m.opened, m.high)); err != nil {
			return 0, err
		}
	}
	if pages, err = m.store.restore(m, keep, faulted); err != nil {
		return pages, err
	}
	m.high = m.size
	return pages, m.open(m.size)
}

// Trim restores the memory, and releases pages.
func (m *Memory) Trim() error {
	if err := m.store.trim(m); err != nil {
		return err
	}
	m.tail, m.high, m.reached = 0, m.size, m.size
	return m.open(m.size)
}

// Written counts the pages that were written since the last trim; -1: the system cannot tell.
func (m *Memory) Written() int { return m.store.written(m) }

// Look calls a function that reads what a guest may have had since the last trim, and returns its error.
func (m *Memory) Look(read func() error) error {
	if err := m.open(max(m.size, m.reached)); err != nil {
		return err
	}
	return errors.Join(read(), m.open(m.size))
}

// Reached is how many bytes Look makes readable.
func (m *Memory) Reached() uint64 { return m.reached }

// Same reports whether the page at an offset is as it was before the first run.
func (m *Memory) Same(at uint64) bool {
	page := m.bytes[at : at+Size]
	if at < m.image.Size() {
		return bytes.Equal(page, m.image.bytes[at:at+Size])
	}
	return isZero(page)
}

// Release releases the memory. No code may access it any more.
func (m *Memory) Release() {
	if m.store != nil {
		m.store.release()
	}
	*m = Memory{}
}
