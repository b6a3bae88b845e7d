package python

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"runner.example/internal/diag"
)

// installedFile is the file in python_packages with the digest of the requirements that are installed there.
const installedFile = ".runner-requirements"

// install installs the packages that handlers/requirements.txt names, if it has changed. It runs uv, or else pip.
func (b *builder) install(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(b.options.Dir, filepath.FromSlash(requirements)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		b.found.Errorf("", diag.Span{File: requirements}, "the file cannot be read: %v", errors.Unwrap(err))
		return nil
	}
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	dir := filepath.Join(b.options.Dir, PackagesDir)
	done, err := os.ReadFile(filepath.Join(dir, installedFile))
	if err == nil && strings.TrimSpace(string(done)) == digest {
		return nil
	}
	if entries, failed := os.ReadDir(dir); err != nil && failed == nil && len(entries) > 0 {
		b.found.Errorf("", diag.Span{File: PackagesDir},
			"it has packages that runner build did not install, and there is a %s: remove the directory or the file", requirements)
		return nil
	}
	return b.installInto(ctx, dir, digest)
}

// installInto installs the packages into a new directory, which then replaces dir.
func (b *builder) installInto(ctx context.Context, dir, digest string) error {
	base, err := filepath.Abs(b.options.Dir)
	if err != nil {
		return err
	}
	target, err := os.MkdirTemp(base, "."+PackagesDir+"-")
	if err != nil {
		return fmt.Errorf("install the packages: %w", err)
	}
	defer os.RemoveAll(target)
	command := installer()
	if command == nil {
		b.found.Errorf("", diag.Span{File: requirements},
			"neither uv nor pip is installed, and one of them installs these packages: install uv, or put the packages into %s and remove this file", PackagesDir)
		return nil
	}
	command = append(command, "--target", target, "--python-version", "3.13", "--only-binary=:all:", "-r", filepath.FromSlash(requirements))
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.WaitDelay = base, time.Second
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "RUNNER_SECRETS_") })
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	b.options.Log("installing the packages of " + requirements + " with " + strings.Join(command[:len(command)-7], " "))
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.notInstalled(output.String())
		return nil
	}
	if err := os.WriteFile(filepath.Join(target, installedFile), []byte(digest+"\n"), 0o644); err != nil {
		return fmt.Errorf("install the packages: %w", err)
	}
	if err := errors.Join(os.RemoveAll(dir), os.Chmod(target, 0o755)); err != nil {
		return fmt.Errorf("install the packages: %w", err)
	}
	if err := os.Rename(target, dir); err != nil {
		return fmt.Errorf("install the packages: %w", err)
	}
	return nil
}

// installer returns the command that installs packages; nil: there is none.
func installer() []string {
	for _, command := range [][]string{{"uv", "pip", "install"}, {"pip3", "install"}, {"pip", "install"}, {"python3", "-m", "pip", "install"}} {
		if _, err := exec.LookPath(command[0]); err == nil {
			if command[0] != "uv" {
				command = append(command, "--disable-pip-version-check", "--no-input")
			}
			return command
		}
	}
	return nil
}

// notInstalled adds what a package manager said to the list.
func (b *builder) notInstalled(output string) {
	var said []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" {
			said = append(said, line)
		}
	}
	var errs []string
	for _, line := range said {
		if text, is := strings.CutPrefix(line, "ERROR: "); is {
			errs = append(errs, text)
		}
	}
	if len(errs) == 0 { // uv draws its message as a tree
		errs = said[max(0, len(said)-4):]
	}
	b.found.Errorf("", diag.Span{File: requirements}, "the packages cannot be installed: %s", strings.Join(errs, "; "))
}

// machineCode matches the names of files with machine code: libx.so, libx.so.1, _x.cpython-313-x86_64-linux-gnu.so.
var machineCode = regexp.MustCompile(`\.(so(\.[0-9]+)*|pyd|dylib|dll)$`)

// dropMachineCode removes files with machine code, and says so once for each package. One that is known not to work without
// is refused. What an app imports of the others is known in its start.
func (b *builder) dropMachineCode() error {
	owners := b.owners()
	left, dropped := map[string]bool{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(b.files)) {
		if !strings.HasPrefix(name, "packages/") || !machineCode.MatchString(name) {
			continue
		}
		file := strings.TrimPrefix(name, "packages/")
		module, _, _ := strings.Cut(path.Base(file), ".")
		owner := owners[file]
		if owner == "" {
			owner, _, _ = strings.Cut(file, "/")
			owner, _, _ = strings.Cut(owner, ".")
		}
		span := diag.Span{File: path.Join(PackagesDir, file)}
		advice, known := native[normal(owner)]
		if advice != "" {
			b.found.Errorf("", span, "package %s has machine code, which a sandbox cannot run: %s", owner, advice)
			continue
		}
		delete(b.files, name)
		_, source := b.files[path.Join(path.Dir(name), module+".py")] // which it is compiled from
		slower := source || strings.HasSuffix(module, "__mypyc") || known
		if !source {
			dropped[strings.ReplaceAll(path.Join(path.Dir(file), module), "/", ".")] = owner
		}
		switch {
		case left[owner]:
		case slower:
			b.found.Warnf("", span, "package %s runs without its machine code, which a sandbox cannot run: it is slower", owner)
		default:
			b.found.Warnf("", span,
				"package %s is built without its machine code, which a sandbox cannot run: what needs it is an error when it is imported", owner)
		}
		left[owner] = true
	}
	if len(dropped) == 0 {
		return nil
	}
	text, err := json.Marshal(dropped)
	b.files[droppedFile] = append(text, '\n')
	return err
}

// droppedFile has the modules of machine code that are left out, with their packages. The SDK reads it to explain an ImportError.
const droppedFile = "machine_code.json"

// owners returns the package of each installed file, by the lists that package managers leave.
func (b *builder) owners() map[string]string {
	owners := map[string]string{}
	for name, text := range b.files {
		dir := path.Base(path.Dir(name))
		if path.Base(name) != "RECORD" || !strings.HasSuffix(dir, ".dist-info") {
			continue
		}
		owner, _, _ := strings.Cut(strings.TrimSuffix(dir, ".dist-info"), "-")
		for line := range strings.Lines(string(text)) {
			file, _, _ := strings.Cut(line, ",")
			owners[strings.Trim(file, `"`)] = strings.ReplaceAll(owner, "_", "-")
		}
	}
	return owners
}

// normal is the name of a package as the index compares it.
func normal(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(name))
}

// native are packages with machine code, with what to use instead; empty: the package works without it, more slowly.
var native = map[string]string{
	"cbor2": "", "charset-normalizer": "", "coverage": "", "frozenlist": "",
	"lazy-object-proxy": "", "markupsafe": "", "msgpack": "", "multidict": "", "propcache": "", "protobuf": "",
	"pvectorc": "", "pyrsistent": "", "pyyaml": "", "simplejson": "", "sqlalchemy": "", "tomli": "", "tornado": "", "websockets": "",
	"wrapt": "", "yaml": "", "yarl": "", "zope-interface": "",

	"aiohttp":         "use runner.fetch, or httpx",
	"argon2-cffi":     "use runner.password",
	"bcrypt":          "use runner.password",
	"cryptography":    "use hashlib and hmac, or the runner's own functions",
	"greenlet":        "use SQLAlchemy's Core without asyncio, or no greenlets",
	"grpcio":          "use HTTP, by runner.fetch",
	"hiredis":         "use redis without hiredis",
	"httptools":       "use h11",
	"jiter":           "use the module json",
	"kiwisolver":      "draw in the client, or write SVG",
	"lxml":            "use xml.etree.ElementTree, or html5lib",
	"matplotlib":      "draw in the client, or write SVG",
	"msgspec":         "use dataclasses and the module json, or attrs",
	"mysqlclient":     "store rows by the schema",
	"numpy":           "use the modules math, statistics and array",
	"orjson":          "use the module json",
	"pandas":          "use the modules csv and statistics",
	"pillow":          "change images in the client or in another service",
	"psycopg-binary":  "store rows by the schema",
	"psycopg2":        "store rows by the schema",
	"psycopg2-binary": "store rows by the schema",
	"pydantic-core":   "use pydantic below 2, dataclasses or attrs",
	"regex":           "use the module re",
	"rpds-py":         "use jsonschema below 4.18",
	"scipy":           "use the modules math and statistics",
	"ujson":           "use the module json",
	"uvloop":          "use asyncio as it is",
}
