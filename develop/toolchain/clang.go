package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"runner.example/internal/diag"
	"runner.example/sdk/c"
)

// clangInstall says how to install a compiler for WebAssembly.
const clangInstall = "install one, on Debian: apt-get install clang-22 lld-22 wasi-libc libclang-rt-22-dev-wasm32 libc++-22-dev-wasm32 libc++abi-22-dev-wasm32; or set WASI_SDK_PATH to a wasi-sdk"

// clangVersions are the versions of Debian's clang-<version> that are tried after clang.
var clangVersions = []int{22, 21, 20, 19, 18, 17, 16, 15, 14}

// clangFlags apply to compiling and linking. The sysroot depends on the target's name;
// newer versions would use another name, with a warning.
var clangFlags = []string{
	"--target=wasm32-wasi", "-O2", "-g1", "-fdebug-info-for-profiling", // lines, and whole names of inlined functions
	"-fno-color-diagnostics", "-fno-caret-diagnostics", "-fdiagnostics-show-option",
}

var (
	cFlags = []string{"-Wall", "-Wextra", "-Werror=format-security", "-Werror=implicit-function-declaration"}
	// WebAssembly without the exceptions proposal cannot unwind its stack.
	cxxFlags = []string{"-Wall", "-Wextra", "-Werror=format-security", "-fno-exceptions"}
	// With the stack first in memory, an overflow traps.
	linkFlags = []string{"-mexec-model=reactor", "-Wl,--stack-first", "-Wl,-z,stack-size=131072", "-Wl,--color-diagnostics=never"}
)

// clang builds a directory of handlers/ in C, C++ or both, as a WASI reactor. The
// compiler's messages are added to the list.
func (b *builder) clang(ctx context.Context, s source) (*Module, error) {
	files, err := cSources(filepath.Join(b.options.Dir, s.path))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.path, err)
	}
	own, err := readFlags(filepath.Join(b.options.Dir, s.path, "compile_flags.txt"))
	if err != nil {
		return nil, fmt.Errorf("read the flags of %s: %w", s.path, err)
	}
	work, err := os.MkdirTemp("", "runner-c-")
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", s.path, err)
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(filepath.Join(work, "include"), c.Files); err != nil {
		return nil, fmt.Errorf("build %s: %w", s.path, err)
	}
	cxx := slices.ContainsFunc(files, isCxx)
	clang, err := findClang(ctx, work, cxx)
	if err != nil {
		return nil, fmt.Errorf("%s is written in %s, and %w", s.path, map[bool]string{false: "C", true: "C++"}[cxx], err)
	}
	return b.fromFile(s, func(building string) (bool, error) {
		r := cRun{b, ctx, s, work, clang}
		allCompiled := true
		var objects []string
		for i, file := range files {
			object := filepath.Join(work, strconv.Itoa(i)+".o")
			ok, err := r.compile(file, object, own)
			if err != nil {
				return false, err
			}
			objects, allCompiled = append(objects, object), allCompiled && ok
		}
		if !allCompiled {
			return false, nil
		}
		for _, file := range c.Linked {
			object := filepath.Join(work, filepath.Base(file)+".o")
			if ok, err := r.compile(filepath.Join(work, "include", file), object, nil); err != nil || !ok {
				return ok, err
			}
			objects = append(objects, object)
		}
		return r.link(objects, building, cxx, own)
	})
}

// cSources returns the source files of a directory and its subdirectories, without tests.
func cSources(dir string) (files []string, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		stem := strings.TrimSuffix(name, filepath.Ext(name))
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "test" || name == "tests"):
			return fs.SkipDir
		case (d.Type().IsRegular() || d.Type()&fs.ModeSymlink != 0) && (isC(name) || isCxx(name)) && !strings.HasSuffix(stem, "_test"):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

func isC(file string) bool { return filepath.Ext(file) == ".c" }

func isCxx(file string) bool {
	switch filepath.Ext(file) {
	case ".cc", ".cpp", ".cxx":
		return true
	}
	return false
}

// readFlags reads a file with one flag on each line, as editors do; nil when it does not
// exist.
func readFlags(path string) (flags []string, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			flags = append(flags, line)
		}
	}
	return flags, err
}

// findClang returns the first compiler that can build a small program: many machines have a
// clang without the libraries for WebAssembly.
func findClang(ctx context.Context, work string, cxx bool) (string, error) {
	names := []string{"clang"}
	if sdk := os.Getenv("WASI_SDK_PATH"); sdk != "" {
		names = []string{filepath.Join(sdk, "bin", "clang")}
	} else {
		for _, version := range clangVersions {
			names = append(names, "clang-"+strconv.Itoa(version))
		}
	}
	language, program := "c", "#include <stdlib.h>\nint main(void) { return malloc(1) == 0; }\n"
	if cxx {
		language, program = "c++", "#include <string>\nint main(int n, char **) { return std::string(n, 'a').size() > 1; }\n"
	}
	seen := map[string]bool{}
	var there []string
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			if seen[real] {
				continue
			}
			seen[real] = true
		}
		there = append(there, name)
		args := slices.Concat(clangFlags, linkFlags, []string{"-x", language, "-", "-o", filepath.Join(work, "probe.wasm")}, libraries(cxx))
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Stdin, cmd.Env = strings.NewReader(program), environ()
		if cmd.Run() == nil {
			return path, nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	if len(there) > 0 {
		return "", fmt.Errorf("%s cannot compile to WebAssembly here (the linker wasm-ld or the libraries for wasm32-wasi are missing): %s", strings.Join(there, ", "), clangInstall)
	}
	return "", fmt.Errorf("the command clang is missing: %s", clangInstall)
}

func libraries(cxx bool) []string {
	if cxx {
		return []string{"-lc++", "-lc++abi"}
	}
	return nil
}

// cRun is the build of one directory.
type cRun struct {
	b           *builder
	ctx         context.Context
	source      source
	work, clang string
}

// compile compiles one file to an object. The SDK's header is available, unless the
// directory has one with the same name. The object contains no path of this machine.
func (r *cRun) compile(file, object string, own []string) (bool, error) {
	dir, err := filepath.Abs(filepath.Join(r.b.options.Dir, r.source.path))
	if err != nil {
		return false, fmt.Errorf("build %s: %w", r.source.path, err)
	}
	flags := cFlags
	if isCxx(file) {
		flags = append(slices.Clone(cxxFlags), "-std=gnu++17")
	}
	args := slices.Concat(clangFlags, flags,
		[]string{"-I", filepath.Join(r.work, "include"), "-ffile-prefix-map=" + r.work + string(filepath.Separator) + "=", "-fdebug-prefix-map=" + dir + "=" + r.source.path},
		compileFlags(own), []string{"-c", file, "-o", object})
	return r.run(args)
}

func (r *cRun) link(objects []string, to string, cxx bool, own []string) (bool, error) {
	return r.run(slices.Concat(clangFlags, linkFlags, objects, linkerFlags(own), libraries(cxx), []string{"-o", to}))
}

// linkerFlags returns the flags of a file that are for linking, compileFlags the others.
func linkerFlags(own []string) (flags []string) {
	for _, f := range own {
		if isLinkerFlag(f) {
			flags = append(flags, f)
		}
	}
	return flags
}

func compileFlags(own []string) []string { return slices.DeleteFunc(slices.Clone(own), isLinkerFlag) }

func isLinkerFlag(f string) bool {
	return strings.HasPrefix(f, "-l") || strings.HasPrefix(f, "-L") || strings.HasPrefix(f, "-Wl,")
}

func (r *cRun) run(args []string) (bool, error) {
	output, ok, err := r.b.run(r.ctx, r.source, []string{"LC_ALL=C"}, r.clang, args...)
	if err == nil {
		r.addMessages(output, ok)
	}
	return ok, err
}

var (
	// A message of the compiler: orders.c:12:5: error: use of undeclared identifier 'x'
	cMessage = regexp.MustCompile(`^([^\s:][^:]*):(\d+):(\d+): (fatal error|error|warning): (.*)$`)
	// A message of the linker: wasm-ld-22: error: /tmp/x/0.o: undefined symbol: f
	linkerMessage = regexp.MustCompile(`^\S*wasm-ld\S*: error: (?:\S+\.o: )?(.*)$`)
)

// addMessages adds the messages of the compiler or the linker to the list. Places outside the app
// are part of the text.
func (r *cRun) addMessages(output string, ok bool) {
	source := r.source.path
	before := len(r.b.found)
	var rest []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if m := cMessage.FindStringSubmatch(line); m != nil {
			row, _ := strconv.Atoi(m[2])
			col, _ := strconv.Atoi(m[3]) // in bytes, which equal columns in almost all code
			span, text := diag.At(source+"/"+filepath.ToSlash(filepath.Clean(m[1])), row, max(1, col), 1), m[5]
			if filepath.IsAbs(m[1]) {
				span, text = diag.Span{File: source}, fmt.Sprintf("%s (in %s:%d)", text, strings.TrimPrefix(m[1], filepath.Join(r.work, "include")+"/"), row)
			}
			if m[4] == "warning" {
				r.b.found.Warnf("", span, "%s", text)
			} else {
				r.b.found.Errorf("", span, "%s", text)
			}
		} else if m := linkerMessage.FindStringSubmatch(line); m != nil {
			r.b.found.Errorf("", diag.Span{File: source}, "%s", m[1])
		} else if line != "" && !strings.HasSuffix(line, "generated.") && !strings.Contains(line, ": warning: ") {
			rest = append(rest, line)
		}
	}
	if !ok && !r.b.found[before:].HasErrors() {
		r.b.found.Errorf("", diag.Span{File: source}, "%s", strings.Join(append(rest, "the compiler failed"), "; "))
	}
}
