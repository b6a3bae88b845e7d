package toolchain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"runner.example/internal/diag"
	"runner.example/internal/system/filelock"
)

// How to install Rust, or its WebAssembly target.
const (
	rustupInstall = "run `rustup target add " + wasip1 + "`"
	rustDebian    = "on Debian `apt-get install cargo libstd-rust-dev-wasm32 lld-14 librust-serde-derive-dev librust-serde-json-dev`"
)

// rustProfile makes small and fast modules, unless the crate's manifest or the environment
// say otherwise. Lines and names of functions are for the debug file.
var rustProfile = [][2]string{
	{"CARGO_PROFILE_RELEASE_PANIC", "abort"},
	{"CARGO_PROFILE_RELEASE_LTO", "true"},
	{"CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1"},
	{"CARGO_PROFILE_RELEASE_OPT_LEVEL", "3"},
	{"CARGO_PROFILE_RELEASE_DEBUG", "1"},
	{"CARGO_PROFILE_RELEASE_STRIP", "none"},
}

// rustLinking are options for the final module only, so dependencies need not be compiled
// again for them. With the stack first in memory, an overflow traps.
var rustLinking = []string{"-C", "link-arg=-zstack-size=262144", "-C", "link-arg=--stack-first"}

// rust builds a crate in handlers/ with cargo. The compiler's messages are added to the
// list.
func (b *builder) rust(ctx context.Context, s source) (*Module, error) {
	dir, err := filepath.Abs(filepath.Join(b.options.Dir, s.path))
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", s.path, err)
	}
	targets, named, ok := b.targets(dir)
	if !ok {
		return nil, nil
	}
	tool, err := findCargo(ctx, dir, targets)
	if err != nil {
		return nil, fmt.Errorf("%s is written in Rust, and %w", s.path, err)
	}
	if tool.target == unknownUnknown && !named {
		b.found.Warnf("", diag.Span{File: s.path},
			"built for %s, because %s is not installed: println! writes nothing, and SystemTime::now and crates that draw random numbers fail; %s",
			unknownUnknown, wasip1, rustupInstall)
	}
	return b.fromFile(s, func(building string) (bool, error) {
		target, err := b.lockTarget(ctx, dir)
		if err != nil {
			return false, fmt.Errorf("build %s: %w", s.path, err)
		}
		defer target.Close()
		output, stderr, ok, err := b.cargo(ctx, tool, dir, filepath.Dir(target.Name()))
		if err != nil {
			return false, fmt.Errorf("build %s: %w", s.path, err)
		}
		found := b.addCargoMessages(s.path, dir, output)
		switch {
		case !ok && !found.errors:
			b.found.Errorf("", diag.Span{File: s.path + "/Cargo.toml"}, "%s", cargoError(stderr))
			return false, nil
		case !ok:
			return false, nil
		case found.module == "":
			b.found.Errorf("", diag.Span{File: s.path + "/Cargo.toml"}, `the crate makes no module: add crate-type = ["cdylib"] under [lib]`)
			return false, nil
		}
		module, err := os.ReadFile(found.module)
		if err == nil {
			err = os.WriteFile(building, module, 0o644)
		}
		if err != nil {
			return false, fmt.Errorf("write the module: %w", err)
		}
		return true, nil
	})
}

// cargo runs cargo in the directory of a crate, with another directory for its output. It
// returns the messages for programs and those for people, and whether it succeeded.
//
// Cargo identifies a module by the name of its crate alone. An option with the crate's
// directory prevents cargo from using the module of another app's crate with the same name.
func (b *builder) cargo(ctx context.Context, tool cargoTool, dir, target string) (messages, stderr []byte, ok bool, err error) {
	reactor, err := tool.reactor(target)
	if err != nil {
		return nil, nil, false, err
	}
	args := []string{"rustc", "--lib", "--release", "--target", tool.target, "--quiet", "--message-format=json"}
	if debianCrates(dir) {
		args = append(args, "--config", `source.crates-io.replace-with="debian"`, "--config", `source.debian.directory="`+debianRegistry+`"`)
	}
	args = slices.Concat(args, []string{"--"}, rustLinking, reactor)
	args = append(args, "--remap-path-prefix", dir+"=handlers/"+filepath.Base(dir), "--cfg", fmt.Sprintf(`folder="%x"`, sha256.Sum256([]byte(dir))))
	cmd := exec.CommandContext(ctx, tool.cargo, args...)
	cmd.Dir = dir
	cmd.Env = append(environ(), "RUSTC="+tool.rustc, "CARGO_TERM_COLOR=never", "CARGO_TARGET_DIR="+target)
	if !hasReleaseProfile(dir) {
		for _, setting := range rustProfile {
			if os.Getenv(setting[0]) == "" {
				cmd.Env = append(cmd.Env, setting[0]+"="+setting[1])
			}
		}
	}
	cmd.WaitDelay = time.Second // for cargo's own child processes
	var stdout, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &errOut
	err = cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); ended && ctx.Err() == nil {
		return stdout.Bytes(), errOut.Bytes(), false, nil
	}
	return stdout.Bytes(), errOut.Bytes(), true, errors.Join(err, ctx.Err())
}

// cargoTarget returns the directory for cargo's output: one cache directory for all apps,
// so that dependencies are compiled once. It contains programs that are run, so it must
// belong to this user alone.
func (b *builder) cargoTarget(dir string) string {
	if target := os.Getenv("CARGO_TARGET_DIR"); filepath.IsAbs(target) {
		return target
	} else if target != "" {
		return filepath.Join(dir, target)
	}
	if cache := b.options.privateCache(); cache != "" {
		return filepath.Join(cache, "cargo")
	}
	return filepath.Join(filepath.Dir(filepath.Dir(dir)), "build", ".cargo")
}

// lockTarget waits until no other build uses cargo's output directory: a module must be
// copied from there before another of its name replaces it. Closing the file releases the
// lock.
func (b *builder) lockTarget(ctx context.Context, dir string) (*os.File, error) {
	target := b.cargoTarget(dir)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(target, ".runner-lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := filelock.Wait(ctx, lock); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", target, err), lock.Close())
	}
	return lock, nil
}

var releaseProfile = regexp.MustCompile(`(?m)^\s*\[\s*profile\s*\.\s*release\b`)

// hasReleaseProfile reports whether a crate's manifest has a release profile.
func hasReleaseProfile(dir string) bool {
	manifest, err := os.ReadFile(filepath.Join(dir, "Cargo.toml"))
	return err == nil && releaseProfile.Match(manifest)
}

// cargoTool is a cargo with a compiler that supports the target. The target's libraries are in the
// directory library.
type cargoTool struct{ cargo, rustc, target, library string }

// findCargo returns the first cargo whose compiler has the library of one of the targets, in
// the path and in rustup's directory, with the first such target.
func findCargo(ctx context.Context, dir string, targets []string) (cargoTool, error) {
	places := filepath.SplitList(os.Getenv("PATH"))
	if home, err := os.UserHomeDir(); err == nil {
		places = append(places, filepath.Join(home, ".cargo", "bin"))
	}
	without, rustc := "", os.Getenv("RUSTC")
	for i, place := range places {
		cargo := filepath.Join(place, "cargo")
		if !filepath.IsAbs(place) || slices.Contains(places[:i], place) || !isProgram(cargo) {
			continue
		}
		tool := cargoTool{cargo: cargo, rustc: rustc}
		if rustc == "" {
			tool.rustc = filepath.Join(place, "rustc")
		}
		for _, tool.target = range targets {
			if tool.library = targetLibrary(ctx, tool.rustc, dir, tool.target); tool.library != "" {
				return tool, nil
			}
		}
		if without == "" {
			without = cargo
		}
	}
	install := strings.ReplaceAll(rustupInstall, wasip1, targets[0])
	if err := ctx.Err(); err != nil {
		return cargoTool{}, fmt.Errorf("find cargo: %w", err)
	}
	if without != "" {
		return cargoTool{}, fmt.Errorf("the compiler of %s does not support WebAssembly (%s): %s, %s", without, strings.Join(targets, ", "), install, rustDebian)
	}
	return cargoTool{}, fmt.Errorf("the command cargo is missing: install Rust 1.63 or later (rustup.rs) and %s, %s", install, rustDebian)
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// targetLibrary asks a compiler for the directory of the target's libraries, and returns it if
// the standard library is there, else "". It runs in the directory of the crate, which may
// select a toolchain.
func targetLibrary(ctx context.Context, rustc, dir, target string) string {
	cmd := exec.CommandContext(ctx, rustc, "--print", "target-libdir", "--target", target)
	cmd.Dir, cmd.Env = dir, environ()
	output, err := cmd.Output()
	if err != nil {
		return ""
	}
	library := strings.TrimSpace(string(output))
	if found, _ := filepath.Glob(filepath.Join(library, "libstd-*.rlib")); len(found) == 0 {
		return ""
	}
	return library
}

// debianRegistry is the crate registry of Debian's packages.
const debianRegistry = "/usr/share/cargo/registry"

// debianCrates reports whether to take crates from Debian's packages: the user has set
// cargo offline, cargo never fetched anything, and no configuration names another source.
func debianCrates(dir string) bool {
	if offline := os.Getenv("CARGO_NET_OFFLINE"); offline != "true" && offline != "1" {
		return false
	}
	home := os.Getenv("CARGO_HOME")
	if user, err := os.UserHomeDir(); home == "" && err == nil {
		home = filepath.Join(user, ".cargo")
	}
	if fetched, _ := filepath.Glob(filepath.Join(home, "registry", "cache", "*", "*.crate")); len(fetched) > 0 {
		return false
	}
	directories := []string{home}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		directories = append(directories, filepath.Join(dir, ".cargo"))
	}
	for _, directory := range directories {
		for _, name := range []string{"config.toml", "config"} {
			config, err := os.ReadFile(filepath.Join(directory, name))
			if err == nil && bytes.Contains(config, []byte("replace-with")) {
				return false
			}
		}
	}
	return isDir(debianRegistry)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// cargoMessage is a line of cargo's JSON output.
type cargoMessage struct {
	Reason       string
	ManifestPath string `json:"manifest_path"`
	Message      rustMessage
	Filenames    []string
}

// rustMessage is a message of the compiler.
type rustMessage struct {
	Message  string
	Level    string
	Code     struct{ Code string }
	Spans    []rustSpan
	Children []rustMessage
}

// rustSpan is a range in a file; columns count characters, from 1. Expansion is the place
// of the macro call that produced it.
type rustSpan struct {
	File      string `json:"file_name"`
	Line      int    `json:"line_start"`
	LineEnd   int    `json:"line_end"`
	Col       int    `json:"column_start"`
	ColEnd    int    `json:"column_end"`
	Primary   bool   `json:"is_primary"`
	Label     string
	Suggested string `json:"suggested_replacement"`
	Expansion *struct{ Span rustSpan }
}

// cargoFound is the result of a crate's build.
type cargoFound struct {
	module string // the path of the module
	errors bool
}

// addCargoMessages adds the compiler's messages to the list; warnings only for the app's own
// files.
func (b *builder) addCargoMessages(source, dir string, output []byte) (found cargoFound) {
	app := filepath.Dir(filepath.Dir(dir))
	for line := range bytes.Lines(output) {
		var m cargoMessage
		if json.Unmarshal(line, &m) != nil {
			continue // output of a macro or a build script
		}
		if m.Reason == "compiler-artifact" && m.ManifestPath == filepath.Join(dir, "Cargo.toml") {
			for _, file := range m.Filenames {
				if filepath.Ext(file) == ".wasm" {
					found.module = file
				}
			}
		}
		isError := strings.HasPrefix(m.Message.Level, "error")
		if m.Reason != "compiler-message" || !isError && m.Message.Level != "warning" {
			continue
		}
		span, own := m.Message.place(app, dir)
		switch {
		case isError && span.File != "":
			b.found.Errorf(m.Message.Code.Code, span, "%s", m.Message.text())
		case isError && !strings.HasPrefix(m.Message.Message, "aborting due to"):
			b.found.Errorf(m.Message.Code.Code, diag.Span{File: source}, "%s", m.Message.text())
		case own:
			b.found.Warnf(m.Message.Code.Code, span, "%s", m.Message.text())
		}
		found.errors = found.errors || isError
	}
	return found
}

// place returns the place of a message, relative to the app directory, and whether it is in
// that directory. The zero span means no place.
func (m *rustMessage) place(app, dir string) (span diag.Span, own bool) {
	for _, s := range m.Spans {
		if !s.Primary {
			continue
		}
		for {
			file, inside := ownFile(app, dir, s.File)
			if inside || s.Expansion == nil {
				width := 1
				if s.Line == s.LineEnd {
					width = max(1, s.ColEnd-s.Col)
				}
				return diag.At(file, s.Line, s.Col, width), inside
			}
			s = s.Expansion.Span
		}
	}
	return diag.Span{}, false
}

// ownFile returns the name of a file relative to the app directory. Cargo names files
// relative to the workspace directory, which is the crate's or one above it.
func ownFile(app, dir, name string) (file string, inside bool) {
	for base := dir; !filepath.IsAbs(name); base = filepath.Dir(base) {
		path := filepath.Join(base, name)
		if _, err := os.Stat(path); err == nil {
			name = path
		} else if base == filepath.Dir(base) {
			return name, false
		}
	}
	rel, err := filepath.Rel(app, name)
	if err != nil || !filepath.IsLocal(rel) {
		return name, false
	}
	return filepath.ToSlash(rel), true
}

// text returns the message in one line, with the label of the place and the first help
// text.
func (m *rustMessage) text() string {
	text := oneLine(m.Message)
	for _, s := range m.Spans {
		if s.Primary && s.Label != "" && !strings.Contains(text, s.Label) {
			text += ": " + oneLine(s.Label)
			break
		}
	}
	for _, child := range m.Children {
		if child.Level == "help" {
			text += "; help: " + oneLine(child.Message)
			if len(child.Spans) == 1 && child.Spans[0].Suggested != "" {
				text += ": " + oneLine(child.Spans[0].Suggested)
			}
			break
		}
	}
	return text
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// cargoError returns cargo's own error in one line.
func cargoError(output []byte) string {
	var parts []string
	for line := range strings.Lines(string(output)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "error: ")
		if line != "" && line != "Caused by:" && !strings.HasPrefix(line, "warning: ") {
			parts = append(parts, line)
		}
	}
	text := strings.Join(parts, "; ")
	switch {
	case text == "":
		return "cargo failed without a message: run cargo build there for details"
	case strings.Contains(text, "network failure") && isDir(debianRegistry):
		return text + "; with CARGO_NET_OFFLINE=true the crates of Debian's packages are used"
	case strings.Contains(text, "no library targets found"):
		return `the crate has no library: write src/lib.rs, and add crate-type = ["cdylib"] under [lib]`
	}
	return text
}
