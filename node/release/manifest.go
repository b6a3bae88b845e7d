package release

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"runner.example/internal/fault"
	"runner.example/internal/tree"
	"runner.example/state/store"
)

// The limits of a release.
const (
	MaxFiles      = 128
	MaxFileBytes  = 64 << 20
	MaxTotalBytes = 256 << 20
	maxNameBytes  = 200
)

// Manifest lists the files of a release.
type Manifest struct {
	// App is the name of the app.
	App   string `json:"app"`
	Files []File `json:"files"`
}

// File is a file of a release: "app.schema", "build/app.wasm", "build/app.debug", or "build/app.tree", which lists the
// files of a module's directory, or "assets/public.tree", which lists those of the directory of assets "public". The contents of these are blobs of their own, and not files of the release.
type File struct {
	Name   string       `json:"name"`
	Size   int64        `json:"size"` // bytes
	Digest store.Digest `json:"sha256"`
}

// FileData is a file with its bytes.
type FileData struct {
	Name string
	Data []byte
	// Tree has the contents that a listing names. It is nil for other files.
	Tree *tree.Tree
}

// Describe returns the manifest of the files.
func Describe(app string, files []FileData) Manifest {
	m := Manifest{App: app}
	for _, f := range files {
		m.Files = append(m.Files, File{f.Name, int64(len(f.Data)), sha256.Sum256(f.Data)})
	}
	m.sort()
	return m
}

func digestOf(data []byte) store.Digest { return sha256.Sum256(data) }

func (m *Manifest) sort() {
	slices.SortFunc(m.Files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
}

// idPrefix begins every id, idChars is the number of characters after it.
const (
	idPrefix = "rel_"
	idChars  = 26
)

// idAlphabet are Crockford's base 32 digits, as in ULIDs, in lower case.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

var idEncoding = base32.NewEncoding(idAlphabet).WithPadding(base32.NoPadding)

// ID returns the id of the release: "rel_" and 26 characters, which have 130 bits of the SHA-256 of
// the manifest. The order of the files does not count.
func (m Manifest) ID() string { return idPrefix + idEncoding.EncodeToString(m.digest())[:idChars] }

// digest returns the SHA-256 of the manifest.
func (m Manifest) digest() []byte {
	m.Files = slices.Clone(m.Files)
	m.sort()
	h := sha256.New()
	fmt.Fprintf(h, "runner release\n%s\n", m.App)
	for _, f := range m.Files {
		fmt.Fprintf(h, "%v %d %s\n", f.Digest, f.Size, f.Name)
	}
	return h.Sum(nil)
}

// CheckID returns a fault with the code Invalid if id cannot be that of a release.
func CheckID(id string) error {
	rest, ok := strings.CutPrefix(id, idPrefix)
	if !ok || len(rest) != idChars || strings.Trim(rest, idAlphabet) != "" {
		return fault.New(fault.Invalid,
			"%.40q is not the id of a release: it is %s and %d characters, as runner releases lists it", id, idPrefix, idChars)
	}
	return nil
}

// Check returns all reasons why the manifest is not valid, each a fault with the code Invalid.
func (m Manifest) Check() error {
	var all []error
	refuse := func(format string, args ...any) { all = append(all, fault.New(fault.Invalid, format, args...)) }
	if m.App == "" || !isPlain(m.App) {
		refuse("the name of the app %.20q is not valid: it has 1 to %d bytes and no control characters", m.App, maxNameBytes)
	}
	if len(m.Files) > MaxFiles {
		refuse("the release has %d files, and the limit is %d", len(m.Files), MaxFiles)
		return errors.Join(all...)
	}
	total, schemas, names := int64(0), 0, map[string]bool{}
	for _, f := range m.Files {
		switch kind := kindOf(f.Name); {
		case kind == "":
			refuse(
				"file %.80q cannot be part of a release: name a schema file, such as app.schema, a module, such as build/app.wasm, its debug file, build/app.debug, or the listing of its files, build/app.tree; or the listing of assets, such as assets/public.tree",
				f.Name)
		case names[f.Name]:
			refuse("file %q is listed twice", f.Name)
		case f.Size < 0 || f.Size > MaxFileBytes:
			refuse("file %q has %d bytes, and the limit is %d", f.Name, f.Size, MaxFileBytes)
		case kind == schemaFile:
			schemas++
		}
		names[f.Name] = true
		total += max(0, min(f.Size, MaxFileBytes))
	}
	for _, f := range m.Files {
		switch module, ok := ModuleOf(f.Name); {
		case !ok || names[module]:
		case kindOf(f.Name) == treeFile:
			refuse("listing %q has no module in the release: add %s, or remove the listing", f.Name, module)
		default:
			refuse("debug file %q has no module in the release: add %s, or remove the debug file", f.Name, module)
		}
	}
	if schemas == 0 {
		refuse("the release has no schema file")
	}
	if total > MaxTotalBytes {
		refuse("the files have %d bytes together, and the limit is %d", total, MaxTotalBytes)
	}
	return errors.Join(all...)
}

// The kinds of files.
const (
	schemaFile = "schema"
	moduleFile = "module"
	debugFile  = "debug file"
	treeFile   = "listing"
	assetsFile = "listing of assets"
)

// suffixes are those of the kinds of files in build/.
var suffixes = map[string]string{moduleFile: ".wasm", debugFile: ".debug", treeFile: ".tree"}

// kindOf returns the kind of a file by its name; "" if a release cannot have it.
func kindOf(name string) string {
	if dir, ok := assetsDir(name); ok {
		if tree.CheckPath(dir) != "" || strings.Contains(dir, `\`) || !isPlain(name) {
			return ""
		}
		return assetsFile
	}
	kind := schemaFile
	base, found := strings.CutSuffix(name, ".schema")
	if !found {
		inBuild, ok := strings.CutPrefix(name, "build/")
		for k, suffix := range suffixes {
			if rest, has := strings.CutSuffix(inBuild, suffix); ok && has {
				kind, base, found = k, rest, true
			}
		}
	}
	if !found || base == "" || strings.HasPrefix(base, ".") || strings.ContainsAny(base, `/\`) || !isPlain(name) {
		return ""
	}
	return kind
}

// IsModule reports whether a file of a release is a module.
func IsModule(name string) bool { return kindOf(name) == moduleFile }

// IsDebug reports whether a file of a release is the debug file of a module. It is read only when a handler
// fails.
func IsDebug(name string) bool { return kindOf(name) == debugFile }

// IsSchema reports whether a file of a release is a schema file.
func IsSchema(name string) bool { return kindOf(name) == schemaFile }

// DebugOf returns the name of the debug file of a module.
func DebugOf(module string) string {
	return strings.TrimSuffix(module, suffixes[moduleFile]) + suffixes[debugFile]
}

// IsTree reports whether a file of a release lists files: those of a module, or assets.
func IsTree(name string) bool {
	kind := kindOf(name)
	return kind == treeFile || kind == assetsFile
}

// The name of a listing of assets has its directory between these.
const (
	assetsPrefix = "assets/"
	assetsSuffix = ".tree"
)

func assetsDir(name string) (dir string, ok bool) {
	if dir, ok = strings.CutPrefix(name, assetsPrefix); ok {
		dir, ok = strings.CutSuffix(dir, assetsSuffix)
	}
	return dir, ok
}

// AssetsOf returns the name of the listing of a directory of assets.
func AssetsOf(dir string) string { return assetsPrefix + dir + assetsSuffix }

// AssetsDir returns the directory of a listing of assets. ok is false if name is not that of one.
func AssetsDir(name string) (dir string, ok bool) {
	dir, ok = assetsDir(name)
	return dir, ok && kindOf(name) == assetsFile
}

// TreeOf returns the name of the listing of the files of a module.
func TreeOf(module string) string {
	return strings.TrimSuffix(module, suffixes[moduleFile]) + suffixes[treeFile]
}

// ModuleOf returns the name of the module of a debug file or a listing. ok is false if name is not that of one.
func ModuleOf(name string) (module string, ok bool) {
	kind := kindOf(name)
	if kind != debugFile && kind != treeFile {
		return "", false
	}
	return strings.TrimSuffix(name, suffixes[kind]) + suffixes[moduleFile], true
}

// isPlain reports whether the text can be shown on a line.
func isPlain(text string) bool {
	return len(text) <= maxNameBytes && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}
