package symbols

import (
	"bytes"
	"path"
	"regexp"
	"strings"
)

// maxPathBytes limits the names of files.
const maxPathBytes = 1 << 10

// sourceFile is a file in a line table. A zero byte ends each part, and what follows it is ignored.
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

// installed matches the directory where a toolchain or a package manager installs sources: Rust's standard
// library, and crates.
var installed = regexp.MustCompile(
	`^.*/(?:rustc[^/]*(?:/[0-9a-f]{40})?/library|rustlib/src/rust/library|registry/src/[^/]+|git/checkouts)/`)

// shownElements is how many elements of an absolute path are shown: a file, its directory and that
// one's.
const shownElements = 3

// display returns the name of a file without the directory in which it was installed. Of another
// absolute path it returns the end: the rest is about the machine that built the module. The
// result is printable.
func display(name string) string {
	name = clean(name[max(0, len(name)-8*maxPathBytes):]) // those of source maps can have megabytes
	if path.IsAbs(name) {
		if name = installed.ReplaceAllString(path.Clean(name), ""); path.IsAbs(name) {
			elements := strings.Split(name[1:], "/")
			name = path.Join(elements[max(0, len(elements)-shownElements):]...)
		}
	} else if name != "" && !strings.HasPrefix(name, "~") {
		name = path.Clean(name)
	}
	if len(name) > maxPathBytes {
		name = "…" + strings.ToValidUTF8(name[len(name)-maxPathBytes:], "")
	}
	return name
}
