package z

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// This file is not part of ristretto; README.md in the folder above tells why
// it is here.

// headBytes is what is set aside of a file that grows (a log, statistics). Who
// writes more of it calls Reserve first.
const headBytes = 64 << 10

// retryEvery is how long a table waits before it is tried again.
const retryEvery = 500 * time.Millisecond

// waiting holds why tables wait, by the path of the table. A table that waits
// to be synced has no path here: its key is "".
var waiting sync.Map

// Waiting returns why a table in dir could not be written, nil if none waits.
func Waiting(dir string) (err error) {
	waiting.Range(func(path, cause any) bool {
		if path == "" || filepath.Dir(path.(string)) == filepath.Clean(dir) {
			err = cause.(error)
		}
		return err == nil
	})
	return err
}

// openTable creates a table. It does not fail for lack of room or of anything
// else: it waits until it can be done.
func openTable(path string, flag, size int) (*MmapFile, error) {
	defer waiting.Delete(path)
	for {
		m, err := openMmapFile(path, flag, size)
		if err == nil || err == NewFile || errors.Is(err, fs.ErrExist) {
			return m, err
		}
		waiting.Store(path, err)
		time.Sleep(retryEvery)
	}
}

// isTable reports whether a file that is opened so is a new table: it is filled
// at once, from a mapping of the size that it is created with.
func isTable(path string, flag int) bool {
	return flag&os.O_EXCL != 0 && filepath.Ext(path) == ".sst"
}

// reserveNew sets aside what is written first of a new file of that size, all
// of a table.
func reserveNew(f *os.File, size int64) error {
	n := size
	if filepath.Ext(f.Name()) != ".sst" {
		n = min(n, headBytes)
	}
	err := Reserve(f, 0, n)
	if errors.Is(err, errors.ErrUnsupported) {
		return writeZeros(f, n)
	}
	return err
}

// writeZeros sets n bytes aside where there is no other way.
func writeZeros(f *os.File, n int64) error {
	zeros := make([]byte, 1<<20)
	for off := int64(0); off < n; off += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), n-off)], off); err != nil {
			return err
		}
	}
	return nil
}

// syncTable syncs the mapping of a table. It does not fail: it waits until it
// can be done. The kernel takes pages for written after it has failed to write
// them, so they are touched before each further attempt.
func syncTable(b []byte) {
	for {
		err := msync(b)
		if err == nil {
			waiting.Delete("")
			return
		}
		waiting.Store("", err)
		time.Sleep(retryEvery)
		for i := 0; i+4 <= len(b); i += os.Getpagesize() {
			p := (*uint32)(unsafe.Pointer(&b[i]))
			atomic.StoreUint32(p, atomic.LoadUint32(p))
		}
	}
}
