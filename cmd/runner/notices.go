package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"strings"

	"runner.example/develop/toolchain/python"
	"runner.example/develop/toolchain/typescript"
)

// packedNotices are the licences of the runner and of what is linked into it.
//
//go:generate go run ./gen
//go:embed notices.txt.gz
var packedNotices []byte

// notices returns the licences of the runner, of the packages linked into it, and of the
// engines that modules in TypeScript and Python contain.
func notices() (string, error) {
	z, err := gzip.NewReader(bytes.NewReader(packedNotices))
	if err != nil {
		return "", fmt.Errorf("read the notices: %w", err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return "", fmt.Errorf("read the notices: %w", err)
	}
	line := "\n" + strings.Repeat("=", 78) + "\n"
	return string(text) + line + typescript.Notices() + line + python.Notices(), nil
}
