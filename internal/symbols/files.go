package symbols

import (
	"bytes"
	"path"
	"regexp"
	"strings"
)

// maxPathBytes limits the names of files.
const maxPathBytes = 1 << 10

// sourceFile is a file in a line table. Its parts may go on after a zero byte.
type sourceFile struct{ compDir, dir, name []byte }

func (f sourceFile) path() string {
	name := f.name
	whole := ""
	for _, part := range [][]byte{f.compDir, f.dir, name} {
		part, _, _ = bytes.Cut(part[:min(len(part), maxPathBytes)], []byte{0})
		if text := string(part); path.IsAbs(text) {
			whole = text
		} else {
			whole = path.Join(whole, text)
		}
	}
	return display(whole)
}

// installed matches the directory in which a toolchain or a package manager has put sources: those of Rust's
// standard library, and crates.
var installed = regexp.MustCompile(`^.*/(?:rustc[^/]*(?:/[0-9a-f]{40})?/library|rustlib/src/rust/library|registry/src/[^/]+|git/checkouts)/`)

// display returns the name of a file without the directory in which it was installed. It is printable.
func display(name string) string {
	name = clean(name[max(0, len(name)-8*maxPathBytes):]) // those of source maps can have megabytes
	if path.IsAbs(name) {
		name = installed.ReplaceAllString(path.Clean(name), "")
	} else if name != "" && !strings.HasPrefix(name, "~") {
		name = path.Clean(name)
	}
	if len(name) > maxPathBytes {
		name = "…" + strings.ToValidUTF8(name[len(name)-maxPathBytes:], "")
	}
	return name
}
