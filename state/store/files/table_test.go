package files_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"runner.example/state/store/files"
)

// oneTable writes a table of some blocks, and returns its path, its content, and the size of its blocks.
func oneTable(t *testing.T) (path string, content []byte, blockBytes int64) {
	t.Helper()
	opt := badger.DefaultOptions(t.TempDir()).WithLogger(nil).WithCompression(options.None)
	db, err := badger.OpenManaged(opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	w := files.NewTableWriter(opt, func(int64) error { return nil })
	for n := range 200 {
		if err := w.Add(&files.Version{Key: fmt.Appendf(nil, "key %04d", n), Seq: uint64(n + 1), Value: bytes.Repeat([]byte("v"), 100)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	path = files.TablePath(opt.Dir, 1)
	if content, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	newest, blockBytes, err := files.CheckTable(path, math.MaxInt64)
	if err != nil || newest != 200 || blockBytes < 3*4096 || blockBytes >= int64(len(content)) {
		t.Fatalf("the table has %d of %d bytes in blocks, up to commit %d: %v", blockBytes, len(content), newest, err)
	}
	return path, content, blockBytes
}

func TestAnyDamageOfATableIsFound(t *testing.T) {
	path, content, blockBytes := oneTable(t)
	check := func(what string, damaged []byte) {
		t.Helper()
		if err := errors.Join(os.Remove(path), os.WriteFile(path, damaged, 0o600)); err != nil { // a new file: ext4 flushes one that is written over
			t.Fatal(err)
		}
		if _, _, err := files.CheckTable(path, math.MaxInt64); !errors.Is(err, files.ErrDamaged) || !strings.Contains(err.Error(), strconv.Quote(path)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range 300 {
		at := random.IntN(len(content))
		if i < 100 {
			at = len(content) - 1 - i // the end, with the lengths and the checksum of the index
		}
		damaged := bytes.Clone(content)
		damaged[at] ^= 1 << random.IntN(8)
		check(fmt.Sprintf("a bit of byte %d of %d", at, len(content)), damaged)
		check(fmt.Sprintf("cut off at %d of %d", at, len(content)), content[:at])
	}
	end := int(blockBytes)
	check("bytes between the blocks and the index", append(append(bytes.Clone(content[:end]), 1, 2, 3), content[end:]...))
	check("bytes before the blocks", append([]byte{1, 2, 3}, content...))
	check("the last bytes of the blocks are missing", append(bytes.Clone(content[:end-10]), content[end:]...))
	check("bytes behind it", append(bytes.Clone(content), 0))
	check("zeros", make([]byte, len(content)))
	check("empty", nil)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := files.CheckTable(path, math.MaxInt64); !errors.Is(err, files.ErrDamaged) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a table that is not there: %v", err)
	}
}

// Only tables whose blocks have at most limit bytes are read in full.
func TestALargeTableIsCheckedByItsIndexAlone(t *testing.T) {
	path, content, blockBytes := oneTable(t)
	content[0] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if newest, size, err := files.CheckTable(path, blockBytes-1); err != nil || newest != 200 || size != blockBytes {
		t.Errorf("above the limit: %d, %d, %v", newest, size, err)
	}
	if _, _, err := files.CheckTable(path, blockBytes); !errors.Is(err, files.ErrChecksum) {
		t.Errorf("at the limit: %v", err)
	}
}
