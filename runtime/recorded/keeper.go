package recorded

import (
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/hostabi/recording"
	"runner.example/internal/atomicio"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/settings"
)

// Options say what is recorded, and how much of it is kept.
type Options struct {
	// Failures is how many failed requests, runs of jobs and operators' calls are kept with all that
	// went in, so that runner replay can run them again; 0: none. It is 100 in runner dev, unless it is set.
	Failures int `toml:"record.failures" default:"0" max:"10000"`
	// Sample is the share of all requests that is kept too, from 0 to 1. At most 1,000 are kept.
	Sample float64 `toml:"record.sample" default:"0"`
	// Keep is how long recordings are kept.
	Keep time.Duration `toml:"record.keep" default:"7d" min:"1m" max:"365d"`
	// Size is how much space recordings may take on the disk of the node.
	Size int64 `toml:"record.size" unit:"size" default:"64mb" min:"1mb" max:"100gb"`

	// Dir is the directory of the files. It is created when the first is written. Key encrypts them.
	Dir string
	Key [32]byte
	// Logger gets a line when a recording is lost. Now is the time; nil: the machine's.
	Logger *slog.Logger
	Now    clock.Calendar
}

const (
	// maxSamples is how many recordings of samples are kept.
	maxSamples = 1000
	// maxQueued is how many recordings wait to be written.
	maxQueued = 32
	// sweepEvery is the interval between deletions of expired files.
	sweepEvery = 10 * time.Minute
)

// Keeper keeps Recordings. Any goroutine may call its methods.
type Keeper struct {
	opt     Options
	aead    cipher.AEAD
	queue   chan *recording.Recording
	lost    atomic.Int64
	closing chan struct{}
	ended   sync.WaitGroup

	mu sync.Mutex // held while files are written or deleted
}

// Open returns a Keeper, and starts its goroutine. Close it.
func Open(opt Options) *Keeper {
	settings.FillZero(&opt)
	opt.Now = opt.Now.Or()
	block, err := aes.NewCipher(opt.Key[:])
	if err != nil {
		panic("BUG: " + err.Error())
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	k := &Keeper{opt: opt, aead: aead, queue: make(chan *recording.Recording, maxQueued), closing: make(chan struct{})}
	k.ended.Go(k.run)
	return k
}

// Close writes the queued Recordings, and ends the goroutine. Keep must not be called after it.
func (k *Keeper) Close() {
	close(k.closing)
	k.ended.Wait()
}

// Records reports whether the next run must be recorded, and whether it is a sample, which is kept even if it succeeds.
func (k *Keeper) Records() (records, sampled bool) {
	if k == nil {
		return false, false
	}
	sampled = k.opt.Sample > 0 && rand.Float64() < k.opt.Sample
	return k.opt.Failures > 0 || sampled, sampled
}

// KeepsFailures reports whether failures are kept.
func (k *Keeper) KeepsFailures() bool { return k.opt.Failures > 0 }

// Keep queues a Recording, and owns it. It does not wait: if the queue is full, the Recording is lost.
func (k *Keeper) Keep(r *recording.Recording) {
	select {
	case k.queue <- r:
	default:
		k.lost.Add(1)
	}
}

func (k *Keeper) run() {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	k.sweep()
	for {
		select {
		case r := <-k.queue:
			k.keep(r)
		case <-sweep.C:
			k.sweep()
		case <-k.closing:
			for {
				select {
				case r := <-k.queue:
					k.keep(r)
				default:
					return
				}
			}
		}
	}
}

// keep writes a Recording, and deletes older ones if there are too many.
func (k *Keeper) keep(r *recording.Recording) {
	if n := k.lost.Swap(0); n > 0 {
		k.opt.Logger.Warn("recordings lost: the queue is full", "recordings", n)
	}
	if err := k.write(r); err != nil {
		k.opt.Logger.Warn("recording not kept", "requestId", r.ID, "cause", err)
	}
	k.sweep()
}

func (k *Keeper) write(r *recording.Recording) error {
	sealed, err := k.seal(r)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := os.MkdirAll(k.opt.Dir, 0o700); err != nil {
		return err
	}
	kind := sampleSuffix
	if r.Outcome.Failed {
		kind = failureSuffix
	}
	return atomicio.WriteFile(filepath.Join(k.opt.Dir, r.ID+kind), sealed)
}

func (k *Keeper) seal(r *recording.Recording) ([]byte, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if err := json.NewEncoder(zip).Encode(r); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return k.aead.Seal(nil, nil, packed.Bytes(), []byte(r.ID)), nil
}

// The suffixes of file names.
const (
	failureSuffix = ".f"
	sampleSuffix  = ".s"
)

// file is one file, with the id of its request.
type file struct {
	id, name string
	size     int64
	written  time.Time
}

func (f file) isFailure() bool { return strings.HasSuffix(f.name, failureSuffix) }

// files returns the files, the newest first.
func (k *Keeper) files() (all []file, err error) {
	entries, err := os.ReadDir(k.opt.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		id, suffix, _ := strings.Cut(e.Name(), ".")
		info, gone := e.Info()
		if gone != nil || "."+suffix != failureSuffix && "."+suffix != sampleSuffix {
			continue
		}
		all = append(all, file{id, e.Name(), info.Size(), info.ModTime()})
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(b.id, a.id) }) // ids begin with their time
	return all, err
}

// sweep deletes expired files, and the oldest ones beyond the limits.
func (k *Keeper) sweep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, err := k.files()
	if err != nil {
		k.opt.Logger.Warn("recordings not listed", "cause", err)
	}
	failures, samples, size, now := 0, 0, int64(0), k.opt.Now()
	for _, f := range all {
		most, n := maxSamples, &samples
		if f.isFailure() {
			most, n = max(k.opt.Failures, 1), &failures
		}
		*n++
		size += f.size
		if *n > most || size > k.opt.Size || now.Sub(f.written) > k.opt.Keep {
			if err := os.Remove(filepath.Join(k.opt.Dir, f.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				k.opt.Logger.Warn("recording not deleted", "requestId", f.id, "cause", err)
			}
		}
	}
}

// List returns the Recordings, the newest first, without their events. A file that cannot be read is
// left out: it is damaged, or another pepper has encrypted it.
func (k *Keeper) List() (all []*recording.Recording, err error) {
	files, err := k.files()
	if err != nil {
		return nil, fmt.Errorf("list recordings: %w", err)
	}
	for _, f := range files {
		r, err := k.read(f)
		if err != nil {
			continue
		}
		all = append(all, r)
	}
	return all, nil
}

// Get returns the Recording of a request. The code of the error is NotFound if there is none.
func (k *Keeper) Get(id string) (*recording.Recording, error) {
	files, err := k.files()
	if err != nil {
		return nil, fmt.Errorf("list recordings: %w", err)
	}
	i := slices.IndexFunc(files, func(f file) bool { return f.id == id })
	if i < 0 {
		return nil, notRecorded(id)
	}
	return k.read(files[i])
}

func notRecorded(id string) error {
	return fault.New(fault.NotFound, "request %q is not recorded on this node", id).
		WithHint("runner recorded list shows those that are; [record] failures in runner.toml says how many failures are kept")
}

func (k *Keeper) read(f file) (*recording.Recording, error) {
	sealed, err := os.ReadFile(filepath.Join(k.opt.Dir, f.name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notRecorded(f.id)
	}
	if err != nil {
		return nil, err
	}
	packed, err := k.aead.Open(nil, nil, sealed, []byte(f.id))
	if err != nil {
		return nil, fault.New(fault.Invalid, "the recording of request %q cannot be decrypted: its file is damaged, or another pepper has encrypted it", f.id)
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		return nil, err
	}
	r := new(recording.Recording)
	return r, json.Unmarshal(text, r)
}

// Delete deletes the Recordings of requests, of all without an id, and returns how many. The code of the error is NotFound
// if there is none of an id.
func (k *Keeper) Delete(ids ...string) (n int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	files, err := k.files()
	if err != nil {
		return 0, fmt.Errorf("list recordings: %w", err)
	}
	for _, id := range ids {
		if !slices.ContainsFunc(files, func(f file) bool { return f.id == id }) {
			return 0, notRecorded(id)
		}
	}
	for _, f := range files {
		if len(ids) > 0 && !slices.Contains(ids, f.id) {
			continue
		}
		if err := os.Remove(filepath.Join(k.opt.Dir, f.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, fmt.Errorf("delete recording: %w", err)
		}
		n++
	}
	return n, nil
}
