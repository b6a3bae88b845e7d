package admin_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"runner.example/node/admin"
)

// capture is a transport that keeps the uploads.
type capture struct {
	admin.Transport // nil: the others are not used
	body            []byte
}

func (c *capture) PutBatch(_ context.Context, body []byte) error { c.body = body; return nil }

func bodyOf(t testing.TB, blobs ...string) []byte {
	t.Helper()
	var batch admin.Batch
	for _, blob := range blobs {
		if !batch.Add([]byte(blob)) {
			t.Fatal("the batch is full")
		}
	}
	sent := &capture{}
	if err := admin.NewClient(sent).PutBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	return sent.body
}

func TestABatchIsLimited(t *testing.T) {
	var batch admin.Batch
	if !batch.Empty() || batch.Add(make([]byte, admin.MaxBatchBytes-39)) || !batch.Empty() {
		t.Error("a blob that is too large was added")
	}
	for n := 0; batch.Add(make([]byte, admin.MaxBatchedBytes)); n++ {
		if n > 7 {
			t.Fatal("no limit")
		}
	}
	if batch.Empty() || !batch.Add(nil) {
		t.Error("a small blob was not added")
	}
}

// What is read is what was written, and other bytes are refused.
func FuzzReadBatch(f *testing.F) {
	whole := bodyOf(f, "one", "", "three")
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(whole[:39])
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		blobs, err := admin.ReadBatch(body)
		if err != nil {
			return
		}
		var texts []string
		for _, blob := range blobs {
			texts = append(texts, string(blob))
		}
		if got := bodyOf(t, texts...); !bytes.Equal(got, body) {
			t.Errorf("%q is written as %q", body, got)
		}
	})
}

func TestABatchIsReadAsItWasWritten(t *testing.T) {
	blobs, err := admin.ReadBatch(bodyOf(t, "one", "", "three"))
	if err != nil || !slices.EqualFunc(blobs, []string{"one", "", "three"}, func(a []byte, b string) bool { return string(a) == b }) {
		t.Errorf("read %q, %v", blobs, err)
	}
}
