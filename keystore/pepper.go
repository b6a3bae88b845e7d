package keystore

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"strings"
	"sync"

	"runner.example/internal/atomicio"
	"runner.example/internal/fault"
	"runner.example/internal/system/disk"
	"runner.example/state/store"
)

// pepperLen is the length of the pepper in bytes; its file holds twice as many
// hexadecimal digits and a newline.
const pepperLen = 32

var pepperKey = []byte("keystore/pepper")

// openPepper reads the pepper, or creates it for a store that never had one, and compares
// it with the check value in the store.
func openPepper(ctx context.Context, st *store.Store, opt Options) ([]byte, error) {
	want, err := storedCheck(ctx, st)
	if err != nil {
		return nil, err
	}
	pepper, err := pepperFor(want, opt.PepperPath())
	if err != nil {
		return nil, err
	}
	if want == nil {
		// Another node of the cluster may store its check at the same time.
		want, err = storeCheck(ctx, st, checkValue(pepper))
	}
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(want, checkValue(pepper)) {
		return nil, fault.New(fault.Invalid,
			"the pepper file %q is not the one that this store was created with: restore that one, or set pepper_file under [keystore]",
			opt.PepperPath())
	}
	return pepper, nil
}

// pepperFor returns the pepper in the file at path. For a store without a check value it creates
// the file if needed. An empty path is that of a store in memory.
func pepperFor(want []byte, path string) ([]byte, error) {
	if path == "" {
		if want != nil {
			return nil, fault.New(fault.Invalid,
				"this store needs the pepper that it was created with: set pepper_file under [keystore]")
		}
		pepper := make([]byte, pepperLen)
		rand.Read(pepper)
		return pepper, nil
	}
	pepper, err := readPepper(path)
	if errors.Is(err, fs.ErrNotExist) {
		if want != nil {
			return nil, fault.New(fault.Invalid,
				"the pepper file %q is missing: restore the one that this store was created with (with a new one no key would be valid)",
				path)
		}
		pepper, err = createPepper(path)
	}
	return pepper, err
}

func readPepper(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "read the pepper file %q", path)
	}
	if !info.Mode().IsRegular() {
		return nil, fault.New(fault.Invalid, "the pepper file %q is not a regular file", path)
	}
	if err := disk.CheckPrivate(path); err != nil {
		return nil, fault.New(fault.Invalid, "the pepper file %q %v", path, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "read the pepper file %q", path)
	}
	pepper, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(pepper) != pepperLen {
		return nil, fault.New(fault.Invalid,
			"the pepper file %q is damaged: it must hold %d hexadecimal digits; restore it from a copy", path, 2*pepperLen)
	}
	return pepper, nil
}

func createPepper(path string) ([]byte, error) {
	pepper := make([]byte, pepperLen)
	rand.Read(pepper)
	if err := atomicio.WriteFile(path, []byte(hex.EncodeToString(pepper)+"\n")); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "create the pepper file %q", path)
	}
	return pepper, nil
}

func storedCheck(ctx context.Context, st *store.Store) (check []byte, err error) {
	err = st.View(ctx, func(tx *store.Tx) (err error) {
		check, err = readCheck(tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read check value of the pepper: %w", err)
	}
	return check, nil
}

// readCheck returns the check value in the store; nil if there is none.
func readCheck(tx *store.Tx) ([]byte, error) {
	check, err := tx.Get(pepperKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return check, err
}

// storeCheck stores a check value unless there is one, and returns that in the store.
func storeCheck(ctx context.Context, st *store.Store, check []byte) (stored []byte, err error) {
	_, err = st.Update(ctx, func(tx *store.Tx) (err error) {
		if stored, err = readCheck(tx); err != nil || stored != nil {
			return err
		}
		stored = check
		return tx.Set(pepperKey, check)
	})
	if err != nil {
		return nil, fmt.Errorf("store check value of the pepper: %w", err)
	}
	return stored, nil
}

// PepperCheck returns the check value of the pepper: it identifies the pepper and reveals
// nothing about it.
func (k *Keystore) PepperCheck() []byte { return checkValue(k.pepper) }

// CheckPepper returns an error unless the file at path has the pepper with that check value.
func CheckPepper(path string, check []byte) error {
	pepper, err := readPepper(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Invalid, "the pepper file %q does not exist", path)
	}
	if err != nil {
		return err
	}
	if !hmac.Equal(check, checkValue(pepper)) {
		return fault.New(fault.Invalid, "the pepper file %q is not the one of the backed-up store", path)
	}
	return nil
}

// checkValue identifies a pepper and reveals nothing about it.
func checkValue(pepper []byte) []byte {
	check, err := hkdf.Key(sha256.New, pepper, nil, "runner pepper check", sha256.Size)
	if err != nil {
		panic("BUG: derive the pepper's check value: " + err.Error())
	}
	return check
}

// Derive returns the key for one purpose, such as "cursors": HKDF-SHA-256 of the
// pepper (RFC 5869). The same pepper gives the same key. A key reveals nothing about
// another one or the pepper.
func (k *Keystore) Derive(purpose string) (key [32]byte) {
	derived, err := hkdf.Key(sha256.New, k.pepper, nil, "runner key for "+purpose, len(key))
	if err != nil {
		panic("BUG: derive a key from the pepper: " + err.Error())
	}
	return [32]byte(derived)
}

// macs computes the HMAC of tokens. It is safe for concurrent use.
type macs struct{ pool sync.Pool }

// mac is one state with buffers for input and output, so that neither is allocated.
type mac struct {
	hash hash.Hash
	in   [maxTokenLen]byte
	out  [sha256.Size]byte
}

func newMACs(pepper []byte) *macs {
	return &macs{sync.Pool{New: func() any { return &mac{hash: hmac.New(sha256.New, pepper)} }}}
}

// of returns the HMAC of a token of at most maxTokenLen bytes.
func (m *macs) of(token []byte) [sha256.Size]byte {
	state := m.pool.Get().(*mac)
	n := copy(state.in[:], token)
	state.hash.Reset()
	state.hash.Write(state.in[:n])
	state.hash.Sum(state.out[:0])
	out := state.out
	clear(state.in[:n])
	m.pool.Put(state)
	return out
}
