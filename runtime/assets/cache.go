package assets

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"runner.example/internal/atomicio"
	"runner.example/internal/clock"
	"runner.example/runtime/content"
)

const (
	// minCompressed is the smallest file with compressed forms: a smaller one fits into a packet as it is.
	minCompressed = 512
	// maxShare is the largest compressed form as a part of the file, in percent. What shrinks less is sent as it is.
	maxShare = 90

	brotliQuality = 7
	zstdWindow    = 4 << 20 // browsers accept up to 8 MiB (RFC 9659)

	// CacheBytes limits the directory of compressed forms, beyond those of the active release.
	CacheBytes = 256 << 20
	// sumBytes is the length of the checksum after a compressed form.
	sumBytes = 8
	// emptySuffix is that of the file that says that a content does not shrink.
	emptySuffix = ".none"
)

var suffixes = [encodings]string{".br", ".zst", ".gz"}

// cachedName matches the names of files of the cache.
var cachedName = regexp.MustCompile(`^[0-9a-f]{64}\.(br|zst|gz|none)$`)

// newPrefix begins the names of files that are being written.
const newPrefix = "new-"

// Cache is a directory of compressed forms, by the digests of the contents:
//
//	<digest>.br .zst .gz  the compressed form, and the XXH64 of it in 8 bytes
//	<digest>.none         the content does not shrink
//
// A form is checked when a release that has it becomes active. One that is damaged or missing is made again. One process
// at a time writes to it.
type Cache struct {
	dir    string
	logger *slog.Logger
	mu     sync.Mutex // held while forms are made: one at a time, so that requests have the other processors
	// made again for each of them, the encoders would need more time than short files take
	brotli *brotli.Writer
	zstd   *zstd.Encoder
	gzip   *gzip.Writer
}

// OpenCache makes the directory if it does not exist.
func OpenCache(dir string, logger *slog.Logger) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of compressed assets: %w", err)
	}
	return &Cache{dir: dir, logger: logger}, nil
}

// Fill gives the files of sites their compressed forms: those of the directory, and new ones. It returns when all are made
// or ctx ends. Files that are requested meanwhile are sent as they are.
func (c *Cache) Fill(ctx context.Context, sites []*Site) {
	c.mu.Lock()
	defer c.mu.Unlock()
	start, made := clock.System(), 0
	defer func() { c.brotli, c.zstd, c.gzip = nil, nil, nil }()
	known, used := c.list(), map[string]bool{}
	for _, s := range sites {
		for _, listed := range s.tree.List() {
			f := s.files["/"+listed.Path]
			if ctx.Err() != nil {
				return
			}
			if !f.shrinks {
				continue
			}
			digest := hex.EncodeToString(listed.SHA256[:])
			for _, suffix := range append(suffixes[:], emptySuffix) {
				used[digest+suffix] = true
			}
			if c.load(f, digest, known) {
				continue
			}
			if err := c.make(f, digest); err != nil {
				c.logger.Warn("asset not compressed", "path", tidy(f.location), "cause", err)
				continue
			}
			known = c.note(known, digest)
			c.load(f, digest, known)
			made++
		}
	}
	c.sweep(used)
	if made > 0 {
		c.logger.Info("assets compressed", "files", made, "took", clock.System().Sub(start).Round(time.Millisecond))
	}
}

func tidy(location string) string { return location[:min(len(location), 200)] }

// list returns the names of the files of the cache.
func (c *Cache) list() map[string]bool {
	names := map[string]bool{}
	entries, _ := os.ReadDir(c.dir) // of one that cannot be read, all forms are made again
	for _, e := range entries {
		names[e.Name()] = true
	}
	return names
}

// note adds the names of a content.
func (c *Cache) note(known map[string]bool, digest string) map[string]bool {
	for _, suffix := range append(suffixes[:], emptySuffix) {
		if _, err := os.Stat(filepath.Join(c.dir, digest+suffix)); err == nil {
			known[digest+suffix] = true
		}
	}
	return known
}

// load gives a file the forms that the cache has. It returns false if one is missing or damaged.
func (c *Cache) load(f *File, digest string, known map[string]bool) bool {
	if known[digest+emptySuffix] {
		return true
	}
	var forms [encodings]*Form
	for e, suffix := range suffixes {
		name := digest + suffix
		if !known[name] {
			return false
		}
		data, err := readCached(c.dir, name)
		if err != nil {
			return false
		}
		form, whole := &Form{name: filepath.Join(c.dir, name)}, &f.identity.Content
		form.set(f, Encoding(e), int64(len(data)), whole.Type, strings.TrimSuffix(whole.ETag, `"`)+"-"+Encoding(e).String()+`"`)
		if len(data) <= maxKept && f.site.opt.Memory.take(int64(len(data))) {
			form.kept.Store(content.NewMemory(data))
		}
		forms[e] = form
	}
	for e, form := range forms {
		f.forms[e].Store(form)
	}
	return true
}

var errDamaged = errors.New("its checksum is wrong")

// readCached reads a compressed form, and compares its checksum.
func readCached(dir, name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	at := len(data) - sumBytes
	if at < 0 || xxhash.Sum64(data[:at]) != binary.LittleEndian.Uint64(data[at:]) {
		return nil, errDamaged
	}
	return data[:at:at], nil
}

// make writes the forms of a file. A content that does not shrink with brotli has none.
func (c *Cache) make(f *File, digest string) error {
	data, err := f.site.tree.ReadFile(f.file.Path)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for e, suffix := range suffixes {
		out.Reset()
		if err := c.compress(Encoding(e), &out, data); err != nil {
			return err
		}
		if e == int(Brotli) && out.Len()*100 > len(data)*maxShare {
			return c.write(digest+emptySuffix, nil)
		}
		sum := xxhash.Sum64(out.Bytes())
		if err := c.write(digest+suffix, binary.LittleEndian.AppendUint64(out.Bytes(), sum)); err != nil {
			return err
		}
	}
	return nil
}

// compress writes data to out in a coding.
func (c *Cache) compress(e Encoding, out *bytes.Buffer, data []byte) (err error) {
	var w io.WriteCloser
	switch e {
	case Brotli:
		if c.brotli == nil {
			c.brotli = brotli.NewWriterLevel(nil, brotliQuality)
		}
		c.brotli.Reset(out)
		w = c.brotli
	case Zstd:
		if c.zstd == nil {
			if c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
				zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow)); err != nil {
				return err
			}
		}
		out.Write(c.zstd.EncodeAll(data, nil))
		return nil
	default:
		if c.gzip == nil {
			if c.gzip, err = gzip.NewWriterLevel(nil, gzip.BestCompression); err != nil {
				return err
			}
		}
		c.gzip.Reset(out)
		w = c.gzip
	}
	_, err = w.Write(data)
	return errors.Join(err, w.Close())
}

// write writes a file of the cache. It is not synced: after a power cut, its checksum tells.
func (c *Cache) write(name string, data []byte) error {
	file, err := atomicio.Create(c.dir, newPrefix, 0o600)
	if err != nil {
		return err
	}
	defer file.Discard()
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.Rename(filepath.Join(c.dir, name))
}

// sweep removes forms that are not used, the oldest first, until the others have CacheBytes.
func (c *Cache) sweep(used map[string]bool) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	var unused []fs.FileInfo
	total := int64(0)
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil || used[e.Name()]:
		case !cachedName.MatchString(e.Name()):
			if strings.HasPrefix(e.Name(), newPrefix) && clock.System().Sub(info.ModTime()) > time.Hour {
				_ = os.Remove(filepath.Join(c.dir, e.Name())) // left by a process that was killed
			}
		default:
			unused = append(unused, info)
			total += info.Size()
		}
	}
	slices.SortFunc(unused, func(a, b fs.FileInfo) int { return cmp.Compare(a.ModTime().UnixNano(), b.ModTime().UnixNano()) })
	for _, info := range unused {
		if total <= CacheBytes {
			return
		}
		if os.Remove(filepath.Join(c.dir, info.Name())) == nil {
			total -= info.Size()
		}
	}
}
