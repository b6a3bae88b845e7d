package python

import (
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// engineDigest is the SHA-256 of python.wasm, which engine/python.wasm.gz has. tools/cpython/build.sh makes the file and
// writes this line.
const engineDigest = "4225a9dda09e9bffef5ce755f69113faa4fe85ef073d1301717b2e1630f4595b"

// engineFiles has the interpreter and the licence notices.
//
//go:embed engine
var engineFiles embed.FS

// engineFile returns CPython. It takes it from built, which is an earlier result or anything else, if it can.
func engineFile(built []byte) ([]byte, error) {
	if isFile(built, engineDigest) {
		return built, nil
	}
	packed, err := engineFiles.Open("engine/python.wasm.gz")
	if err != nil {
		panic("BUG: the interpreter is embedded: " + err.Error())
	}
	defer packed.Close()
	var file []byte
	z, err := gzip.NewReader(packed)
	if err == nil {
		file, err = io.ReadAll(z)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack CPython: %w", err)
	}
	if !isFile(file, engineDigest) {
		return nil, errors.New("BUG: CPython is not the file that tools/cpython/build.sh made")
	}
	return file, nil
}

func isFile(file []byte, digest string) bool {
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:]) == digest
}

// Notices returns the licences of the interpreter and of what is compiled into it.
func Notices() string {
	text, err := engineFiles.ReadFile("engine/NOTICE.md")
	if err != nil {
		panic("BUG: the notices are embedded: " + err.Error())
	}
	return string(text)
}
