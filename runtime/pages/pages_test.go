package pages_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"runner.example/runtime/pages"
)

// most is the largest size of a memory of the tests.
const most = 32 << 16

// eachSystem runs a test with each system and finder that works here.
func eachSystem(t *testing.T, test func(t *testing.T, in pages.System)) {
	ran := 0
	for _, kind := range []string{pages.Native, pages.Portable} {
		for at := range pages.Open(kind).Finders() {
			in := pages.Open(kind)
			finder := in.Finders()[at]
			t.Run(fmt.Sprint(kind, " by ", finder), func(t *testing.T) {
				defer func() {
					if err := in.Close(); err != nil {
						t.Error(err)
					}
				}()
				if err := in.Use(finder); err != nil {
					t.Skip(err) // such as an older kernel
				}
				if in.Finder() != finder {
					t.Fatalf("%s is in use, want %s", in.Finder(), finder)
				}
				ran++
				test(t, in)
			})
		}
	}
	if ran < 2 {
		t.Errorf("only %d systems can be tested", ran)
	}
}

// attached returns a memory with an image of some filled pages.
func attached(t *testing.T, in pages.System, content []byte) (pages.Memory, *pages.Image) {
	t.Helper()
	im, err := in.NewImage(content)
	if err != nil {
		t.Fatal(err)
	}
	m, err := in.Reserve(most, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Resize(uint64(len(content))); err != nil {
		t.Fatal(err)
	}
	if err := m.Attach(im); err != nil {
		t.Fatal(err)
	}
	return m, im
}

// Runs write to any pages and grow. After each restore and each trim the memory is the image, and what grows is zeros.
func TestAMemoryIsItsImageAfterEachRestore(t *testing.T) {
	content := make([]byte, 4<<16)
	for page := 0; page < len(content); page += 3 << 14 {
		content[page+17] = 1
	}
	eachSystem(t, func(t *testing.T, in pages.System) {
		m, im := attached(t, in, content)
		defer im.Close()
		defer m.Release()
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		for run := range 300 {
			if size := m.Size(); !bytes.Equal(m.Bytes()[:size], content) {
				t.Fatalf("run %d does not begin with the image", run)
			}
			if random.IntN(3) == 0 {
				size := uint64(5+random.IntN(28)) << 16
				if err := m.Resize(size); err != nil {
					t.Fatal(err)
				}
				if behind := m.Bytes()[len(content):size]; bytes.Count(behind, []byte{0}) != len(behind) {
					t.Fatalf("run %d grows, and finds more than zeros", run)
				}
			}
			written := map[uint64]bool{}
			for range random.IntN(30) {
				at := random.Uint64N(m.Size())
				m.Bytes()[at] = 0xff
				written[at/pages.Size] = true
			}
			for page := range written {
				if m.Same(page * pages.Size) {
					t.Fatalf("run %d: page %d counts as unchanged", run, page)
				}
			}
			if n := m.Written(); n >= 0 && n < len(written) {
				t.Errorf("run %d: %d pages were written, and %d are counted", run, len(written), n)
			}
			if high := m.High(); high != m.Size() {
				t.Errorf("run %d: the largest size is %d, want %d", run, high, m.Size())
			}
			if err := m.Resize(im.Size()); err != nil {
				t.Fatal(err)
			}
			switch random.IntN(10) {
			case 0:
				if err := m.Trim(); err != nil {
					t.Fatal(err)
				}
				if m.Tail() != 0 {
					t.Errorf("run %d: %d bytes are kept after a trim", run, m.Tail())
				}
			default:
				if _, err := m.Restore(1+random.IntN(200), true); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.Look(func() error {
				for at := im.Size(); at < m.Reached(); at += pages.Size {
					if !m.Same(at) {
						return fmt.Errorf("page %d behind the image is not zeros", at/pages.Size)
					}
				}
				return nil
			}); err != nil {
				t.Fatalf("run %d: %v", run, err)
			}
		}
	})
}

func TestAnImageIsACopyThatManyMemoriesShare(t *testing.T) {
	eachSystem(t, func(t *testing.T, in pages.System) {
		content := bytes.Repeat([]byte("content "), 1<<13)
		first, im := attached(t, in, content)
		defer im.Close()
		second, err := in.Reserve(most, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := second.Attach(im); err == nil {
			t.Error("a memory without bytes has an image of 64 KiB")
		}
		if err := second.Resize(im.Size()); err != nil {
			t.Fatal(err)
		}
		if err := second.Attach(im); err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(content)
		clear(content)
		clear(first.Bytes()[:im.Size()])
		if !bytes.Equal(im.Bytes(), want) || !bytes.Equal(second.Bytes()[:im.Size()], want) {
			t.Error("a write to one memory, or to what the image was made of, changes others")
		}
		if n, err := first.Restore(1000, true); n != int(im.Size()/pages.Size) || err != nil {
			t.Errorf("%d pages are restored: %v", n, err)
		}
		first.Release()
		if !bytes.Equal(second.Bytes()[:im.Size()], want) {
			t.Error("the release of one memory changes another one")
		}
		second.Release()
		second.Release() // does nothing
	})
}

func TestAMemoryMayHaveNoBytes(t *testing.T) {
	eachSystem(t, func(t *testing.T, in pages.System) {
		m, im := attached(t, in, nil)
		defer im.Close()
		defer m.Release()
		for range 3 {
			if err := m.Resize(1 << 16); err != nil {
				t.Fatal(err)
			}
			if m.Bytes()[100] != 0 {
				t.Error("a byte of the run before is there")
			}
			m.Bytes()[100] = 1
			if err := m.Resize(0); err != nil {
				t.Fatal(err)
			}
			if _, err := m.Restore(10, true); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestFilledCountsWholePages(t *testing.T) {
	memory := make([]byte, 4*pages.Size)
	memory[0], memory[3*pages.Size-1] = 1, 1
	if got, want := pages.Filled(memory), int64(2*pages.Size); got != want {
		t.Errorf("%d bytes are filled, want %d", got, want)
	}
}

func TestPortableMemoryIsNotGuarded(t *testing.T) {
	in := pages.Open(pages.Portable)
	if _, err := in.Reserve(most, true); in.Guards() || err == nil {
		t.Error("portable memory is guarded")
	}
	if err := in.Use(pages.ByMarks); err == nil {
		t.Error("portable memory has marks")
	}
}
