package python

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"runner.example/internal/atomicio"
	"runner.example/internal/clock"
	"runner.example/internal/diag"
)

// bytecode compiles the sources of the module, and adds their bytecode to its files, where Python looks for it.
// Errors and warnings in the app's own sources are added to the list. Packages may have files that are for other
// versions of Python: such a file has no bytecode, and its error is that of an import.
func (b *builder) bytecode(ctx context.Context) error {
	var sources []source
	var keys []string
	for _, file := range slices.Sorted(maps.Keys(b.files)) {
		if path.Ext(file) != ".py" {
			continue
		}
		s := source{appDir + file, b.files[file]}
		key := b.cacheKey(s)
		if bytecode := b.cached(key); bytecode != nil {
			b.files[bytecodePath(file)] = bytecode
			continue
		}
		sources, keys = append(sources, s), append(keys, key)
	}
	if len(sources) == 0 {
		return nil
	}
	if err := b.options.Interpreter.load(ctx, b.wasm); err != nil {
		return err
	}
	results, err := b.compileAll(ctx, sources)
	if err != nil {
		return err
	}
	for i, result := range results {
		file := strings.TrimPrefix(sources[i].path, appDir)
		own := strings.HasPrefix(file, "handlers/")
		if own {
			for _, w := range result.warnings {
				b.found.Warnf("", diag.At(file, w.line, w.col, 1), "%s", w.message)
			}
		}
		switch {
		case result.bytecode != nil:
			b.files[bytecodePath(file)] = result.bytecode
			if len(result.warnings) == 0 || !own { // else it is compiled again, so that each build warns
				b.keep(keys[i], result.bytecode)
			}
		case own:
			b.found.Errorf("", diag.At(file, result.wrong.line, result.wrong.col, 1), "%s", result.wrong.message)
		}
	}
	b.sweepCache()
	return nil
}

// appDir is where a module finds its files.
const appDir = "/app/"

// bytecodePath is where Python looks for the bytecode of a source.
func bytecodePath(file string) string {
	dir, name := path.Split(file)
	return dir + "__pycache__/" + strings.TrimSuffix(name, ".py") + ".cpython-313.pyc"
}

// batchBytes is how much source a request compiles: so little that several requests share the work, and so much that
// the restoring after each does not count.
const batchBytes = 200 << 10

// compileAll compiles sources on all processors. The results are in their order.
func (b *builder) compileAll(ctx context.Context, sources []source) ([]compiled, error) {
	type batch struct{ from, to int }
	var batches []batch
	for from := 0; from < len(sources); {
		to, size := from, 0
		for ; to < len(sources) && (to == from || size+len(sources[to].text) <= batchBytes); to++ {
			size += len(sources[to].text)
		}
		batches = append(batches, batch{from, to})
		from = to
	}
	results := make([]compiled, len(sources))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan batch, len(batches))
	for _, one := range batches {
		next <- one
	}
	close(next)
	var workers sync.WaitGroup
	failed := make(chan error, len(batches))
	for range min(len(batches), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for one := range next {
				done, err := b.options.Interpreter.compile(ctx, sources[one.from:one.to])
				if err != nil {
					failed <- err
					cancel()
					return
				}
				copy(results[one.from:], done)
			}
		})
	}
	workers.Wait()
	close(failed)
	return results, <-failed // the first, or nil
}

// The cache has the bytecode of each source that was compiled, by the digest of what it was made from.

// cacheKey is the name of a source's file in the cache.
func (b *builder) cacheKey(s source) string {
	h := sha256.New()
	fmt.Fprintf(h, "%x\n%x\n%d %s\n", b.sum, sha256.Sum256(compileSource), len(s.path), s.path)
	h.Write(s.text)
	return hex.EncodeToString(h.Sum(nil))
}

// The bytecode of a source that no build has used for this long is deleted. A file that is used has a time of at most
// usedTimes ago.
const (
	unusedFor = 30 * 24 * time.Hour
	usedTimes = 24 * time.Hour
)

func (b *builder) cached(key string) []byte {
	if b.options.CacheDir == "" {
		return nil
	}
	file := filepath.Join(b.options.CacheDir, key)
	info, err := os.Stat(file)
	if err != nil {
		return nil
	}
	bytecode, err := os.ReadFile(file)
	if err != nil || len(bytecode) < 16 {
		return nil
	}
	if now := clock.System(); now.Sub(info.ModTime()) > usedTimes {
		_ = os.Chtimes(file, now, now) // an error only has it compiled again some day
	}
	return bytecode
}

// keep writes to the cache. An error only has the source compiled again.
func (b *builder) keep(key string, bytecode []byte) {
	if b.options.CacheDir == "" || os.MkdirAll(b.options.CacheDir, 0o700) != nil {
		return
	}
	f, err := atomicio.Create(b.options.CacheDir, "new-", 0o600)
	if err != nil {
		return
	}
	defer f.Discard()
	if _, err := f.Write(bytecode); err == nil {
		_ = f.Rename(filepath.Join(b.options.CacheDir, key))
	}
}

// sweepCache deletes what no build has used for long.
func (b *builder) sweepCache() {
	if b.options.CacheDir == "" {
		return
	}
	entries, _ := os.ReadDir(b.options.CacheDir)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && clock.System().Sub(info.ModTime()) > unusedFor {
			_ = os.Remove(filepath.Join(b.options.CacheDir, entry.Name()))
		}
	}
}
