package keystore_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/state/store"
	"runner.example/state/store/frame"
)

func TestThePepperIsCreatedOnceWithMode0600(t *testing.T) {
	w := onDisk(t)
	path := filepath.Join(w.opt.Dir, "pepper")
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
		t.Fatalf("%v, %v", info, err)
	}
	made, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key := w.must(w.create(operator(compile(t, typed)), keystore.CreateRequest{Scope: "orders_read"}))
	w.reopen()
	w.accepts(key)
	if again, _ := os.ReadFile(path); !bytes.Equal(made, again) {
		t.Error("the pepper file changed")
	}
}

func TestThePepperMayBeKeptElsewhere(t *testing.T) {
	w := onDisk(t)
	w.close()
	elsewhere := filepath.Join(t.TempDir(), "secret")
	if err := os.Rename(filepath.Join(w.opt.Dir, "pepper"), elsewhere); err != nil {
		t.Fatal(err)
	}
	w.opt.PepperFile = elsewhere
	w.open()
	if _, err := os.Stat(filepath.Join(w.opt.Dir, "pepper")); !os.IsNotExist(err) {
		t.Errorf("the data directory has a pepper too: %v", err)
	}
}

func TestAnUnusablePepperFileIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(path string) error
		says  string
	}{
		"readable by the group": {func(p string) error { return os.Chmod(p, 0o640) }, "chmod 600"},
		"writable by others":    {func(p string) error { return os.Chmod(p, 0o602) }, "chmod 600"},
		"cut off":               {func(p string) error { return os.Truncate(p, 40) }, "damaged"},
		"empty":                 {func(p string) error { return os.Truncate(p, 0) }, "damaged"},
		"not hexadecimal": {func(p string) error {
			return os.WriteFile(p, []byte(strings.Repeat("x", 64)), 0o600)
		}, "damaged"},
		"another one": {func(p string) error {
			return os.WriteFile(p, []byte(strings.Repeat("ab", 32)+"\n"), 0o600)
		}, "not the one that this store was created with"},
		"missing": {os.Remove, "missing"},
		"a directory": {func(p string) error {
			if err := os.Remove(p); err != nil {
				return err
			}
			return os.Mkdir(p, 0o700)
		}, "not a regular file"},
	} {
		if c.says == "chmod 600" && runtime.GOOS == "windows" {
			continue // files have no such mode there
		}
		w := onDisk(t)
		w.close()
		path := filepath.Join(w.opt.Dir, "pepper")
		if err := c.spoil(path); err != nil {
			t.Fatal(err)
		}
		err := w.tryOpen()
		if fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if detail := fault.Of(err).Detail; !strings.Contains(detail, strconv.Quote(path)) || !strings.Contains(detail, c.says) {
			t.Errorf("%s: %q does not name the file, or does not say %q", name, detail, c.says)
		}
	}
}

func TestAnInterruptedCreationOfThePepperIsRepeated(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pepper.new"), []byte("half a pep"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &fixture{TB: t, clock: newClock(), opt: keystore.Options{Dir: dir}}
	w.open()
	key := w.must(w.create(operator(compile(t, typed)), keystore.CreateRequest{Scope: "orders_read"}))
	w.reopen()
	w.accepts(key)
	if _, err := os.Stat(filepath.Join(dir, "pepper.new")); !os.IsNotExist(err) {
		t.Errorf("the unfinished file still exists: %v", err)
	}
}

func TestStoreAloneIsUseless(t *testing.T) {
	w := onDisk(t)
	op := operator(compile(t, typed))
	var keys []keystore.Key
	for range 3 {
		keys = append(keys, w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read"})))
	}
	var backup bytes.Buffer
	if _, err := w.store.Backup(t.Context(), &backup, nil, nil); err != nil {
		t.Fatal(err)
	}
	w.close()

	copied := func() *fixture {
		attacker := &fixture{TB: t, clock: newClock(), opt: keystore.Options{Dir: t.TempDir()}}
		if err := os.CopyFS(attacker.opt.Dir, os.DirFS(w.opt.Dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(attacker.opt.Dir, "pepper")); err != nil {
			t.Fatal(err)
		}
		return attacker
	}
	restored := func() *fixture {
		attacker := &fixture{TB: t, clock: newClock(), opt: keystore.Options{Dir: t.TempDir()}}
		st, err := store.Open(store.Options{Dir: attacker.opt.Dir})
		if err != nil {
			t.Fatal(err)
		}
		in, _, err := frame.NewReader(t.Context(), &backup)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Restore(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		return attacker
	}
	for name, obtain := range map[string]func() *fixture{"a copy of the directory": copied, "a backup": restored} {
		attacker := obtain()
		if err := attacker.tryOpen(); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s opens without its pepper: %v", name, err)
		}
		other := onDisk(t)
		attacker.opt.PepperFile = filepath.Join(other.opt.Dir, "pepper")
		if err := attacker.tryOpen(); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s opens with another pepper: %v", name, err)
		}
		// Removing the check value does not help an attacker.
		st, err := store.Open(store.Options{Dir: attacker.opt.Dir})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Update(t.Context(), func(tx *store.Tx) error { return tx.Delete([]byte("keystore/pepper")) }); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		attacker.open()
		for _, key := range keys {
			attacker.rejects(key, keystore.Unknown)
		}
	}
}

func TestNoFileHoldsAToken(t *testing.T) {
	w := onDisk(t)
	s := compile(t, typed)
	op := operator(s)
	var tokens []string
	keep := func(key keystore.Key) keystore.Key {
		tokens = append(tokens, key.Token.Reveal())
		return key
	}
	for range 20 {
		key := keep(w.must(w.create(op, keystore.CreateRequest{Scope: "orders_read", Name: "n", Tenant: "t"})))
		w.accepts(key)
		keep(w.must(w.rotate(op, key.ID, day)))
		keep(w.must(w.rotate(op, key.ID, 0)))
		w.must(w.revoke(op, key.ID))
	}
	search := func(where string, content []byte) {
		for _, token := range tokens {
			random := token[len("ord_") : len("ord_")+30]
			if bytes.Contains(content, []byte(random)) {
				t.Errorf("%s holds a token", where)
			}
		}
	}
	records := 0
	err := w.store.View(t.Context(), func(tx *store.Tx) error {
		for item, err := range tx.Scan(nil, nil, false) {
			if err != nil {
				return err
			}
			records++
			search(string(item.Key), append(bytes.Clone(item.Key), item.Value...))
		}
		return nil
	})
	if err != nil || records < 100 {
		t.Fatalf("%d records, %v", records, err)
	}
	w.close()
	files := 0
	err = filepath.Walk(w.opt.Dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		search(path, content)
		return err
	})
	if err != nil || files < 3 {
		t.Errorf("%d files, %v", files, err)
	}
}

// All bytes of the check value count, in the store and in a backup.
func TestAPepperIsComparedByAllBytesOfItsCheck(t *testing.T) {
	w := onDisk(t)
	check, path := w.keys.PepperCheck(), w.opt.PepperPath()
	if err := keystore.CheckPepper(path, check); err != nil {
		t.Fatal(err)
	}
	for i := range check {
		other := bytes.Clone(check)
		other[i] ^= 1
		if err := keystore.CheckPepper(path, other); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("a check that differs in byte %d: %v", i, err)
		}
	}
	if err := keystore.CheckPepper(path, check[:8]); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a part of the check: %v", err)
	}
}
