package compiler_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"runner.example/internal/diag"
	"runner.example/internal/settings"
	"runner.example/schema/compiler"
)

var update = flag.Bool("update", false, "rewrite the printed diagnostics of the fixtures")

// codes are all codes that Compile and the checks of modules report.
var codes = strings.Fields(`
	E001 E002 E003 E004 E005 E006 E007
	E100 E101 E102 E103 E104 E105 E106 E107 E109 E110 E120
	E200 E201 E202 W202 W203
	E210 E211 E212 E213 E214 E215 E216 E217 E218 E219 E220 E221 E222 E223 W224 E225 E226 W227 E228 W229
	E230 E231 E232 E233 E234 E235 E236 E237 E238 E239 E240 E241 E242 W243 W244 E245 W246 E247 E248 E249 E260 E261
	E300 E301 W302 E303 W304 E305 W305 E306 E307 W308 E309 E310 E311 W312 W313 E314 E315 E316 W317 E324
	E400 E401 E402 E403 E404 E405 E406 E407 E408 E409 E410 E411 E412 E413 E414 E415 W416 E418 W418 E419
	E420 E421 E422 E423 E424 E425 E426 E427 E428 W429 E430 E431 E432 E433 E434
	E500 E501 W502 E503 E510 E511 E512 E513 E514 E515 W516 E520 E530 E531 E532 E540 E541 W541 E542 E543 E550 E551 E552 E553
	E555 E556 E557 E558 E559 E560 E570 E571 E572 E573 E574 E575 W576 W577
`)

var (
	expectLine  = regexp.MustCompile(`(?m)^//! (\d+):(\d+) ([EW]\d{3})$`)
	setLine     = regexp.MustCompile(`(?m)^//! set: (\w+)=(.*)$`)
	exportsLine = regexp.MustCompile(`(?m)^//! exports:(.*)$`)
	modulesLine = regexp.MustCompile(`(?m)^//! modules:(.*)$`)
	absentLine  = regexp.MustCompile(`(?m)^//! absent: (.*)$`)
	assetsLine  = regexp.MustCompile(`(?m)^//! lacks files: (.*)$`)
	omitsLine   = regexp.MustCompile(`(?m)^//! omits: (.*)$`)
	plainLine   = regexp.MustCompile(`(?m)^//! without initialization:(.*)$`)
)

// fixture is a schema file with its expected diagnostics in comments, `//! LINE:COL CODE`. The
// comment `//! exports: a b` has the names that modules export, `//! modules: a b` the names of the
// modules, `//! without initialization: a b` the modules that run no code before a request, and `//! absent: a b` the
// directories of files that do not exist. `//! lacks files: a b` has the directories of assets that do not exist; the
// others lack the file of spa. `//! omits: a b` has files that are left out of all directories of assets.
// `//! set: NAME=text` sets a variable, and with `//! without values` variables need no value.
type fixture struct {
	src    diag.Source
	expect []string
}

func readFixture(t *testing.T, path string) fixture {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{src: diag.Source{Name: filepath.Base(path), Text: text}}
	for _, m := range expectLine.FindAllSubmatch(text, -1) {
		f.expect = append(f.expect, fmt.Sprintf("%s:%s %s", m[1], m[2], m[3]))
	}
	return f
}

func (f fixture) check() diag.List {
	opt := compiler.Options{Vars: map[string]settings.Given{}}
	for _, m := range setLine.FindAllSubmatch(f.src.Text, -1) {
		opt.Vars[string(m[1])] = settings.Given{Text: string(m[2]), Place: diag.Span{File: "RUNNER_VARS_" + string(m[1])}}
	}
	if bytes.Contains(f.src.Text, []byte("\n//! without values\n")) {
		opt.Unset = compiler.Assumed
	}
	s, found := compiler.Compile([]diag.Source{f.src}, opt)
	if m := exportsLine.FindSubmatch(f.src.Text); m != nil && s != nil {
		found.Append(s.CheckHandlers(strings.Fields(string(m[1]))))
	}
	if m := modulesLine.FindSubmatch(f.src.Text); m != nil && s != nil {
		found.Append(s.CheckModules(strings.Fields(string(m[1]))))
	}
	if m := absentLine.FindSubmatch(f.src.Text); m != nil && s != nil {
		for _, module := range s.Modules {
			if slices.Contains(strings.Fields(string(m[1])), module.Files) {
				found.Append(module.CheckFiles([]string{"directory " + module.Files + " does not exist: create it, or name another directory"}))
			}
		}
	}
	if m := assetsLine.FindSubmatch(f.src.Text); m != nil && s != nil {
		for _, a := range s.Assets {
			var problems []string
			if slices.Contains(strings.Fields(string(m[1])), a.Dir) {
				problems = []string{"directory " + a.Dir + " does not exist: create it, or name another directory"}
			}
			found.Append(a.CheckFiles(problems, false))
		}
	}
	if m := omitsLine.FindSubmatch(f.src.Text); m != nil && s != nil {
		for _, a := range s.Assets {
			found.Append(a.WarnOmitted(strings.Fields(string(m[1]))))
		}
	}
	if m := plainLine.FindSubmatch(f.src.Text); m != nil && s != nil {
		for _, name := range strings.Fields(string(m[1])) {
			found.Append(s.CheckFresh(name))
		}
	}
	return found.Sorted()
}

func TestFixturesHaveTheExpectedDiagnostics(t *testing.T) {
	paths, err := filepath.Glob("testdata/fixtures/*.schema")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".schema"), func(t *testing.T) {
			f := readFixture(t, path)
			found := f.check()
			var got []string
			for _, d := range found {
				got = append(got, fmt.Sprintf("%d:%d %s", d.Span.Start.Line, d.Span.Start.Col, d.Code))
			}
			var printed bytes.Buffer
			if err := diag.Print(&printed, []diag.Source{f.src}, found.Excerpt()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(f.expect, got); diff != "" {
				t.Errorf("diagnostics (-expected +found):\n%s\n%s", diff, printed.Bytes())
			}
			golden := strings.TrimSuffix(path, ".schema") + ".txt"
			if *update {
				if err := os.WriteFile(golden, printed.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), printed.String()); diff != "" {
				t.Errorf("printed (-%s +now):\n%s", golden, diff)
			}
		})
	}
}

func TestEveryCodeHasAFixture(t *testing.T) {
	paths, err := filepath.Glob("testdata/fixtures/*.schema")
	if err != nil {
		t.Fatal(err)
	}
	covered := map[string]bool{}
	for _, path := range paths {
		for _, line := range readFixture(t, path).expect {
			_, code, _ := strings.Cut(line, " ")
			covered[code] = true
			if !slices.Contains(codes, code) {
				t.Errorf("%s expects %s, which is not a known code", path, code)
			}
		}
	}
	for _, code := range codes {
		if !covered[code] {
			t.Errorf("no fixture expects %s", code)
		}
	}
}
