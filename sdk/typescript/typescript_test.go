package typescript_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"runner.example/sdk/typescript"
)

func read(t *testing.T, file func(string) ([]byte, error), name string) string {
	t.Helper()
	text, err := file(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// names are what the groups of a pattern match, sorted, each once.
func names(pattern, text string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(m[1], ",") {
			all = append(all, strings.TrimSpace(name))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestTheTypesDeclareExactlyTheExports(t *testing.T) {
	for source, types := range map[string]string{"src/index.ts": "index.d.ts", "test/index.ts": "test.d.ts"} {
		there := names(`(?m)^export \{ (.*) \} from`, read(t, typescript.Sources.ReadFile, source))
		declared := names(`(?m)^  export (?:function|class|const|\{) (\w+(?: as \w+)?)`, read(t, typescript.Declarations.ReadFile, types))
		if len(there) < 15 || !slices.Equal(there, declared) {
			t.Errorf("%s has\n%v\nand the declarations have\n%v", source, there, declared)
		}
	}
}

func TestTheTypesDeclareExactlyTheMatchers(t *testing.T) {
	there := names(`(?m)^  (to[A-Z]\w+)[:(]`, read(t, typescript.Sources.ReadFile, "test/expect.ts"))
	declared := names(`(?m)^    (to[A-Z]\w+)\(`, read(t, typescript.Declarations.ReadFile, "test.d.ts"))
	if len(there) < 20 || !slices.Equal(there, declared) {
		t.Errorf("there is\n%v\nand the declarations have\n%v", there, declared)
	}
}

func TestTheTypesDeclareEveryGlobal(t *testing.T) {
	var all string
	for _, pattern := range []string{"src/runtime.ts", "src/web/*.ts", "src/web/*/*.ts"} {
		files, err := fs.Glob(typescript.Sources, pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			all += read(t, typescript.Sources.ReadFile, file)
		}
	}
	there := names(`\b(?:define|expose)\("(\w+)",`, all)
	declared := names(`(?m)^declare (?:function|class|const) (\w+)`, read(t, typescript.Declarations.ReadFile, "globals.d.ts"))
	there = append(there, "atob", "btoa", "queueMicrotask") // the engine's own
	slices.Sort(there)
	if !slices.Equal(there, declared) {
		t.Errorf("there is\n%v\nand the declarations have\n%v", there, declared)
	}
}

func TestTheTypesDeclareTheFilesOfText(t *testing.T) {
	declared := names(`(?m)^declare module "\*(\.\w+)"`, read(t, typescript.Declarations.ReadFile, "globals.d.ts"))
	bundle, err := os.ReadFile("../../develop/toolchain/typescript/bundle.go")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`textFiles = \[\]string\{(.*)\}`).FindSubmatch(bundle)
	if list == nil {
		t.Fatal("develop/toolchain/typescript/bundle.go has no list of the files")
	}
	if built := names(`"(\.\w+)"`, string(list[1])); !slices.Equal(built, declared) {
		t.Errorf("the build reads %v as text, and the declarations have %v", built, declared)
	}
}

func TestTheHelpersAreTheSameInAllSDKs(t *testing.T) {
	declared := read(t, typescript.Declarations.ReadFile, "index.d.ts")
	for _, name := range []string{
		"ok", "created", "noContent", "redirect", "badRequest", "unauthorized", "forbidden", "notFound", "error",
		"query", "select", "get", "aggregate", "insert", "update", "remove", "field", "and", "or", "not", "getContext",
	} {
		if !strings.Contains(declared, "export function "+name+"(") && !strings.Contains(declared, "export function "+name+"<") {
			t.Errorf("there is no %s", name)
		}
	}
}
