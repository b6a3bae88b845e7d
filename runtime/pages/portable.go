package pages

import (
	"bytes"
	"errors"
	"fmt"
)

// portableSystem needs these functions of the operating system: reserve, commit, decommit, free and protect.
type portableSystem struct{}

func (portableSystem) Guards() bool      { return false }
func (portableSystem) Finders() []Finder { return []Finder{ByComparison} }
func (portableSystem) Finder() Finder    { return ByComparison }
func (portableSystem) Close() error      { return nil }

func (portableSystem) Use(f Finder) error {
	if f != ByComparison {
		return fmt.Errorf("portable memory is compared with its image, and not found by %s", f)
	}
	return nil
}

func (portableSystem) Reserve(bytes uint64, guarded bool) (Memory, error) {
	if guarded {
		return Memory{}, errors.New("portable memory cannot be guarded")
	}
	all, err := reserve(bytes)
	if err != nil {
		return Memory{}, err
	}
	return Memory{bytes: all, store: portableStore{all}}, nil
}

func (portableSystem) NewImage(memory []byte) (_ *Image, err error) {
	im := &Image{file: -1, release: func(im *Image) error { return free(im.bytes) }}
	if len(memory) == 0 {
		im.release = func(*Image) error { return nil }
		return im, nil
	}
	if im.bytes, err = reserve(uint64(len(memory))); err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	if err := commit(im.bytes); err != nil {
		return nil, errors.Join(fmt.Errorf("make an image: %w", err), free(im.bytes))
	}
	putBack(im.bytes, memory) // not the pages of zeros
	if err := protect(im.bytes); err != nil {
		return nil, errors.Join(fmt.Errorf("protect an image: %w", err), free(im.bytes))
	}
	return im, nil
}

// putBack makes the beginning of memory equal to image, page by page, and returns how many pages differed.
func putBack(memory, image []byte) (pages int) {
	for at := uint64(0); at < uint64(len(image)); at += Size {
		here, want := memory[at:at+Size], image[at:at+Size]
		if !bytes.Equal(here, want) {
			copy(here, want)
			pages++
		}
	}
	return pages
}

// portableStore keeps a memory of which all pages are its own.
type portableStore struct{ all []byte }

func (s portableStore) open(have, size uint64) error {
	if size < have {
		return decommit(s.all[size:have])
	}
	return commit(s.all[have:size])
}

func (s portableStore) attach(m *Memory) error {
	putBack(m.bytes, m.image.bytes)
	return nil
}

// restore keeps all pages of the image, however many were written. Those behind it are released when the memory is
// closed to its size, and are zeros when it grows again.
func (s portableStore) restore(m *Memory, _ int, _ bool) (pages int, err error) {
	m.searches++
	m.reached = m.size
	return putBack(m.bytes, m.image.bytes), nil
}

func (s portableStore) review(*Memory) bool { return false }

func (s portableStore) trim(m *Memory) error {
	if err := decommit(s.all[:m.opened]); err != nil {
		return err
	}
	m.opened = 0
	if err := m.open(m.size); err != nil {
		return err
	}
	if m.image != nil {
		putBack(m.bytes, m.image.bytes)
	}
	return nil
}

func (s portableStore) written(*Memory) int { return -1 }

func (s portableStore) known() int { return 0 }

func (s portableStore) release() {
	if err := free(s.all); err != nil {
		panic("BUG: release a memory: " + err.Error())
	}
}
