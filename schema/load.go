package schema

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"runner.example/internal/diag"
)

// Load reads the *.schema files of the folder dir, in name order. The sources
// are named as their files are, without the folder. A folder without such a
// file is an error.
func Load(dir string) ([]diag.Source, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("read app folder: %w", err)
	}
	var sources []diag.Source
	for _, entry := range entries {
		if entry.IsDir() || strings.HasPrefix(entry.Name(), ".") || filepath.Ext(entry.Name()) != ".schema" {
			continue
		}
		text, err := readSource(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read schema: %w", err)
		}
		sources = append(sources, diag.Source{Name: entry.Name(), Text: text})
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("app folder %q holds no *.schema file: write one, or name the folder of the app", dir)
	}
	return sources, nil
}

// readSource reads a file as far as is needed to refuse one that is too large.
func readSource(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}
