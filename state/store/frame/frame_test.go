package frame_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"runner.example/state/store/frame"
)

type part struct {
	kind    byte
	payload string
}

func write(t testing.TB, head string, parts []part) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := frame.NewWriter(t.Context(), &out, []byte(head))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if err := w.Write(p.kind, []byte(p.payload)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// readAll reads all frames. The head is returned as it is at the end.
func readAll(ctx context.Context, in io.Reader) (head []byte, parts []part, r *frame.Reader, err error) {
	r, head, err = frame.NewReader(ctx, in)
	for err == nil {
		var kind byte
		var payload []byte
		if kind, payload, err = r.Next(); err != nil || kind == frame.End {
			break
		}
		parts = append(parts, part{kind, string(payload)})
	}
	return head, parts, r, err
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		head := strings.Repeat("h", random.IntN(3)*30_000)
		var parts []part
		for range random.IntN(5) {
			kinds := []byte{frame.Keys, frame.Blob, frame.Data}
			parts = append(parts, part{kinds[random.IntN(3)], strings.Repeat(string('a'+rune(random.IntN(26))), random.IntN(200_000))})
		}
		text := write(t, head, parts)
		gotHead, got, r, err := readAll(t.Context(), bytes.NewReader(text))
		if err != nil || string(gotHead) != head || len(got) != len(parts) {
			t.Fatalf("read a head of %d bytes of %d, and %d frames of %d: %v", len(gotHead), len(head), len(got), len(parts), err)
		}
		for i := range parts {
			if got[i] != parts[i] {
				t.Errorf("frame %d is another one", i)
			}
		}
		if n, sum := r.Total(); n != int64(len(text)) || sum != sha256.Sum256(text) {
			t.Errorf("it has %d bytes with the hash %x", n, sum)
		}
	}
}

// Any change, any end, and anything behind it is noticed, at the latest at the last frame.
func TestEveryDamageIsNoticed(t *testing.T) {
	parts := []part{{frame.Keys, "some keys"}, {frame.Data, ""}, {frame.Data, "data"}}
	text := write(t, `{"head":1}`, parts)
	damaged := func(what string, at int, bad []byte) {
		t.Helper()
		head, got, _, err := readAll(t.Context(), bytes.NewReader(bad))
		if !errors.Is(err, frame.ErrDamaged) && !errors.Is(err, frame.ErrNotBackup) {
			t.Errorf("%s %d: read %q, %v, %v", what, at, head, got, err)
		}
	}
	for at := range text {
		for bit := range 8 {
			bad := bytes.Clone(text)
			bad[at] ^= 1 << bit
			damaged("bit in byte", at, bad)
		}
		damaged("cut at", at, text[:at])
	}
	damaged("a byte more", len(text), append(bytes.Clone(text), 0))
	damaged("twice", 2, append(bytes.Clone(text), text...))
	other := write(t, `{"head":1}`, []part{{frame.Keys, "other keys"}, {frame.Data, ""}, {frame.Data, "data"}})
	damaged("a frame of another backup", 0, bytes.Replace(text, []byte("some keys"), []byte("other key"), 1))
	if bytes.Equal(text, other) {
		t.Error("two backups are equal")
	}
}

func TestDataOfSeveralFramesIsOneStream(t *testing.T) {
	text := write(t, "", []part{{frame.Blob, "b"}, {frame.Data, "one "}, {frame.Data, ""}, {frame.Data, "two"}, {frame.Keys, "k"}, {frame.Blob, "b"}})
	r, _, err := frame.NewReader(t.Context(), bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	next := func(want byte) {
		t.Helper()
		if kind, _, err := r.Next(); kind != want || err != nil {
			t.Fatalf("frame %q, %v; want %q", kind, err, want)
		}
	}
	data := func(want string) {
		t.Helper()
		if got, err := io.ReadAll(r.Data()); string(got) != want || err != nil {
			t.Fatalf("data %q, %v; want %q", got, err, want)
		}
	}
	next(frame.Blob)
	data("one two")
	data("")
	next(frame.Keys)
	next(frame.Blob)
	data("")
	next(frame.End)
	cut, _, err := frame.NewReader(t.Context(), bytes.NewReader(write(t, "", []part{{frame.Data, "one"}})[:30]))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(cut.Data()); !errors.Is(err, frame.ErrDamaged) {
		t.Errorf("data that ends early: %v", err)
	}
}

func TestLimitsAndErrorsOfAWriter(t *testing.T) {
	const maxHead = 64 << 10
	for head, want := range map[string]bool{strings.Repeat("h", maxHead): true, strings.Repeat("h", maxHead+1): false, "two\nlines": false} {
		if _, err := frame.NewWriter(t.Context(), io.Discard, []byte(head)); (err == nil) != want {
			t.Errorf("a head of %d bytes: %v", len(head), err)
		}
	}
	if text := write(t, strings.Repeat("h", maxHead), nil); len(text) < maxHead {
		t.Errorf("%d bytes", len(text))
	} else if head, _, _, err := readAll(t.Context(), bytes.NewReader(text)); err != nil || len(head) != maxHead {
		t.Errorf("the longest head: %d bytes, %v", len(head), err)
	}
	broken := errors.New("broken")
	if _, err := frame.NewWriter(t.Context(), failing{broken}, nil); err != broken {
		t.Errorf("nothing can be written: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	w, err := frame.NewWriter(ctx, io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := frame.NewReader(ctx, bytes.NewReader(write(t, "", []part{{frame.Keys, "k"}})))
	if err != nil {
		t.Fatal(err)
	}
	cancel(broken)
	if err := w.Write(frame.Keys, nil); err != broken {
		t.Errorf("written after the end of the context: %v", err)
	}
	if _, _, err := r.Next(); err != broken {
		t.Errorf("read after the end of the context: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Whatever is read, it ends, with what was written or an error.
func FuzzReader(f *testing.F) {
	f.Add([]byte("runner backup 2\n{}\n"))
	f.Add(write(f, "{}", []part{{frame.Keys, "keys"}, {frame.Data, "data"}}))
	f.Fuzz(func(t *testing.T, text []byte) {
		head, parts, _, err := readAll(t.Context(), bytes.NewReader(text))
		if err != nil {
			if !errors.Is(err, frame.ErrDamaged) && !errors.Is(err, frame.ErrNotBackup) {
				t.Errorf("%v", err)
			}
			return
		}
		if again := write(t, string(head), parts); !bytes.Equal(again, text) {
			t.Errorf("%q is read, and written as %q", text, again)
		}
	})
}
