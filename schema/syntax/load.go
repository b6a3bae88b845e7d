package syntax

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"runner.example/internal/diag"
)

// Load reads the *.schema files of the app directory dir, in name order. A source has the
// name of its file, without the directory. Load fails if there are no such files.
func Load(dir string) ([]diag.Source, error) {
	paths, err := Files(dir)
	if err != nil {
		return nil, err
	}
	sources := make([]diag.Source, len(paths))
	for i, path := range paths {
		text, err := ReadFile(path)
		if err != nil {
			return nil, err
		}
		sources[i] = diag.Source{Name: filepath.Base(path), Text: text}
	}
	return sources, nil
}

// Files returns the paths of the *.schema files of the app directory dir, in name order,
// without hidden files. It fails if there are none.
func Files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("read app directory: %w", err)
	}
	var paths []string
	for _, entry := range entries {
		if entry.IsDir() || strings.HasPrefix(entry.Name(), ".") || filepath.Ext(entry.Name()) != ".schema" {
			continue
		}
		paths = append(paths, filepath.Join(dir, entry.Name()))
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("app directory %q has no *.schema file: write one, or name another directory", dir)
	}
	return paths, nil
}

// ReadFile reads a schema file. A line of the text ends with a newline alone, also if the file
// has the line ends of Windows (CRLF): what is made of the text, such as the id of a release, is the same
// on every system. If the file is too large, it reads only one byte more than the limit, so that Parse can report
// it. It refuses files that are not regular files: a read of a pipe could block forever.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read schema: %s is not a regular file: remove it or give it another name", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	if len(text) > MaxFileBytes {
		return text, nil // shorter text would look complete
	}
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), nil
}
