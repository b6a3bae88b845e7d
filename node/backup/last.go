package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"runner.example/internal/atomicio"
)

// lastName is the file of a data directory that describes its last good backup.
const lastName = "last-backup"

// Last describes the last good backup of a data directory: one that has arrived complete at its destination.
type Last struct {
	// Created is when the backup was begun.
	Created time.Time `json:"created"`
	Bytes   int64     `json:"bytes"`
	// Sequence is the number of its newest commit.
	Sequence uint64 `json:"sequence"`
}

// ReadLast returns the last good backup of a data directory; nil: there was none.
func ReadLast(dir string) (*Last, error) {
	path := filepath.Join(dir, lastName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var last Last
	if err := json.Unmarshal(text, &last); err != nil {
		return nil, fmt.Errorf("%q is damaged: delete it, and make a backup: %w", path, err)
	}
	return &last, nil
}

// WriteLast notes the last good backup of a data directory. The process that has its store open calls it,
// one call at a time.
func WriteLast(dir string, last Last) error {
	text, err := json.Marshal(last)
	if err != nil {
		return err
	}
	return atomicio.WriteFile(filepath.Join(dir, lastName), append(text, '\n'))
}
