package languages_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"runner.example/develop/scaffold"
	"runner.example/tests/harness"
)

var (
	pageFile  = regexp.MustCompile("(?ms)^`([^`\n]+)`:\n\n```[a-z]*\n(.*?)^```$")
	pageNeeds = regexp.MustCompile(`Needs ([^.]*)\.`)
	pageName  = regexp.MustCompile("`([^`]+)`")
)

// Each section of docs/languages.md with files is an app, which is built and called if its compiler is there.
func TestTheHandlersOfTheLanguagesPageAnswer(t *testing.T) {
	t.Parallel()
	page := harness.MustRead(t, harness.RepoFile("docs/languages.md"))
	schema := pageFile.FindStringSubmatch(page)
	if schema == nil || schema[1] != "app.schema" {
		t.Fatalf("the page has no schema: %q", schema)
	}
	answered := 0
	for _, section := range strings.Split(page, "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		files := pageFile.FindAllStringSubmatch(text, -1)
		if name == "Three commands" || len(files) == 0 || strings.Contains(text, "Not tried here") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if name == "Python" {
				harness.NeedPatches(t)
			}
			if needs := pageNeeds.FindStringSubmatch(text); needs != nil {
				for _, command := range pageName.FindAllStringSubmatch(needs[1], -1) {
					if _, err := exec.LookPath(command[1]); err != nil {
						t.Skipf("%s is missing", command[1])
					}
				}
			}
			a := harness.NewApp(t, schema[2], "")
			for _, f := range files {
				a.Write(filepath.FromSlash(f[1]), f[2])
			}
			a.Env = append(a.Env, "CARGO_NET_OFFLINE=true")
			a.Must("build")
			got := a.Serve().Do("GET", "/hello", "")
			if got.Status != 200 || strings.ReplaceAll(got.Body, " ", "") != `{"message":"hello"}` {
				t.Errorf("%d %s", got.Status, got.Body)
			}
			answered++
		})
	}
	if answered < 6 {
		t.Errorf("%d languages answered: TypeScript, Python, Go, Rust, C and WebAssembly text can be built where the tests run", answered)
	}
}

func TestTheLanguagesPageHasWhatRunnerNewOffers(t *testing.T) {
	page := harness.MustRead(t, harness.RepoFile("docs/languages.md"))
	_, offered, _ := strings.Cut(page, "runner new app --lang ")
	offered, _, _ = strings.Cut(offered, "\n")
	for _, lang := range scaffold.Languages() {
		if !regexp.MustCompile(`\b` + lang + `\b`).MatchString(offered) {
			t.Errorf("it does not name --lang %s: %s", lang, offered)
		}
	}
	if rows := regexp.MustCompile(`(?m)^\| .* \| (tried.*|\*\*not tried\*\*|\*\*cannot run\*\*: not tried) \|$`).FindAllString(page, -1); len(rows) != 20 {
		t.Errorf("%d languages say whether they were tried", len(rows))
	}
}
