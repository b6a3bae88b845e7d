package typescript_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"runner.example/develop/toolchain/toolchaintest"
	"runner.example/hostabi/abi"
)

// Its sources call eval, so the module has each part of the SDK.
const absentFile = `import { ok, type RouteRequest } from "@runner/sdk";

export const there = (req: RouteRequest) => ok(req.body<string[]>().filter((name) => (0, eval)("typeof " + name) !== "undefined"));
`

// The table of docs/typescript/web.md has what is undefined, and no other page promises it.
func TestTheTableOfAbsentNamesIsTrue(t *testing.T) {
	page, err := os.ReadFile("../../../docs/typescript/web.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## What is not there\n")
	var absent []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			names, _, _ := strings.Cut(line[2:], "|")
			for _, name := range regexp.MustCompile("`([\\w.]+)`").FindAllStringSubmatch(names, -1) {
				absent = append(absent, name[1])
			}
		}
	}
	if len(absent) < 15 {
		t.Fatalf("the table has only %v", absent)
	}
	module := toolchaintest.Module(t, map[string]string{"handlers/absent.ts": absentFile})
	for names, want := range map[string]string{
		marshal(t, absent): "[]",
		`["navigator.userAgent","URL.canParse","MessageChannel","ErrorEvent","URLPattern","CompressionStream","PerformanceObserver","Intl.Collator","crypto.subtle"]`: "",
	} {
		if want == "" {
			want = names
		}
		a := toolchaintest.Ask(t, module, "there", abi.Request{Body: []byte(names)})
		if a.Body != want {
			t.Errorf("of %s there are %s %s, want %s", names, a.Body, a.Log, want)
		}
	}
}

func marshal(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
