package toolchain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"runner.example/internal/diag"
)

// The targets of handlers in Rust. With WASI, the standard library works except for files, sockets
// and threads.
const (
	wasip1         = "wasm32-wasip1"
	oldWasip1      = "wasm32-wasi" // the name of wasip1 before Rust 1.84
	unknownUnknown = "wasm32-unknown-unknown"
)

// targets returns the targets that a crate may be built for, the preferred one first. named: the
// crate, the app or the environment names the target. If that is not a target of handlers, it is
// reported, and ok is false.
func (b *builder) targets(dir string) (targets []string, named, ok bool) {
	target, at, found := namedTarget(filepath.Dir(filepath.Dir(dir)), dir)
	switch {
	case !found:
		return []string{wasip1, oldWasip1, unknownUnknown}, false, true
	case target == wasip1 || target == oldWasip1:
		return []string{wasip1, oldWasip1}, true, true
	case target == unknownUnknown:
		return []string{unknownUnknown}, true, true
	}
	b.found.Errorf("", at, "build.target is %s, but handlers are built for %s or %s: remove it, or name one of these", target, wasip1, unknownUnknown)
	return nil, true, false
}

var (
	tomlTable  = regexp.MustCompile(`^\s*\[\s*([^\]]*?)\s*\]`)
	tomlTarget = regexp.MustCompile(`^\s*(build\s*\.\s*|build\s*=\s*\{.*\b)?target\s*=\s*([^#}]*[^#}\s])`)
)

// namedTarget returns the target that the environment or cargo's configuration in the app names
// for a crate. As in Cargo, the variable comes first, then the file nearest to the crate. The variable
// is ignored if it does not name a target of handlers, because it may be set for other programs.
func namedTarget(app, dir string) (target string, at diag.Span, found bool) {
	if target := os.Getenv("CARGO_BUILD_TARGET"); slices.Contains([]string{wasip1, oldWasip1, unknownUnknown}, target) {
		return target, at, true
	}
	for ; ; dir = filepath.Dir(dir) {
		for _, name := range []string{"config", "config.toml"} {
			path := filepath.Join(dir, ".cargo", name)
			text, err := os.ReadFile(path)
			if err != nil {
				continue
			}
			table, number := "", 0
			for line := range strings.Lines(string(text)) {
				number++
				if m := tomlTable.FindStringSubmatch(line); m != nil {
					table = m[1]
				}
				m := tomlTarget.FindStringSubmatchIndex(line)
				if m == nil || (table == "build") == (m[2] >= 0) || table != "build" && table != "" {
					continue
				}
				file, _ := ownFile(app, dir, path)
				value := line[m[4]:m[5]]
				return strings.Trim(value, `"'`), diag.At(file, number, m[4]+1, len(value)), true
			}
		}
		if dir == app || dir == filepath.Dir(dir) {
			return "", at, false
		}
	}
}

// reactor returns options for the linker that make a module for WASI a reactor, whose
// _initialize is called once. Without one, the linker makes every export run the constructors.
// The function is in an object file of the compiler. It is linked from an archive in dir: the
// linker ignores it there if the crate has its own _initialize. If the toolchain lacks that file, no options are added.
func (t cargoTool) reactor(dir string) ([]string, error) {
	if t.target == unknownUnknown {
		return nil, nil
	}
	object, err := os.ReadFile(filepath.Join(t.library, "self-contained", "crt1-reactor.o"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	const function = "_initialize"
	path := filepath.Join(dir, ".runner-reactor.a")
	if err := replaceFile(path, archive(function, object)); err != nil {
		return nil, err
	}
	return []string{"-C", "link-arg=" + path, "-C", "link-arg=--export=" + function}, nil
}

// archive returns an archive of one object file with an index of its only symbol, in the format
// of ar:
//
//	"!<arch>\n"
//	header of "/": u32 1 · u32 offset of the next header, big endian · symbol · 0
//	header of the file: its bytes
func archive(symbol string, object []byte) []byte {
	const magic, headerBytes = "!<arch>\n", 60
	header := func(name string, bytes int) string {
		return fmt.Sprintf("%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, 0, 0, 0, "644", bytes)
	}
	index := symbol + "\x00"
	if len(index)%2 != 0 {
		index += "\x00" // headers have even offsets
	}
	index = string(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 1}, uint32(len(magic)+headerBytes+8+len(index)))) + index
	return slices.Concat([]byte(magic+header("/", len(index))+index+header("reactor.o/", len(object))), object)
}
