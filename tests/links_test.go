package tests

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const (
	decisions    = "docs/decisions"
	maxPageBytes = 20_000
)

// markdownFiles returns the texts of the project's pages, by their paths from the root.
func markdownFiles(t *testing.T) map[string]string {
	t.Helper()
	root := os.DirFS(repoRoot(t))
	var names []string
	for _, pattern := range []string{"*.md", "sdk/*/README.md", "plugins/examples/*/README.md", "tests/*/README.md",
		"third_party/*/README.md"} {
		found, err := fs.Glob(root, pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	err := fs.WalkDir(root, "docs", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, name := range names {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = string(text)
	}
	return pages
}

func TestLinksLeadToFilesAndHeadings(t *testing.T) {
	pages := markdownFiles(t)
	links, anchors := 0, 0
	for name, text := range pages {
		for _, link := range linksOf(text) {
			if link.Scheme != "" {
				continue
			}
			links++
			to := name
			if link.Path != "" {
				to = path.Join(path.Dir(name), link.Path)
			}
			switch _, err := os.Stat(filepath.Join(repoRoot(t), to)); {
			case path.IsAbs(link.Path) || !filepath.IsLocal(to):
				t.Errorf("%s: the link %s must be relative, to a file of the repository", name, link)
			case err != nil:
				t.Errorf("%s: the link %s leads to %s, which does not exist", name, link, to)
			case link.Fragment != "":
				anchors++
				if !slices.Contains(anchorsOf(pages[to]), link.Fragment) {
					t.Errorf("%s: the link %s leads to a heading that %s does not have", name, link, to)
				}
			}
		}
	}
	if links < 200 || anchors < 30 {
		t.Errorf("only %d links and %d anchors were found: is the search broken?", links, anchors)
	}
}

func TestDecisionsAreListed(t *testing.T) {
	index := decisions + "/README.md"
	pages := markdownFiles(t)
	listed := map[string]int{}
	for _, link := range linksOf(pages[index]) {
		listed[path.Join(decisions, link.Path)]++
	}
	found := 0
	for name := range pages {
		if path.Dir(name) != decisions || name == index {
			continue
		}
		found++
		if listed[name] != 1 {
			t.Errorf("%s links to %s %d times, want once", index, name, listed[name])
		}
	}
	if found < 50 {
		t.Errorf("only %d decisions were found: is the search broken?", found)
	}
}

// subjectFile finds names of folders and files of a subject in code.
var subjectFile = regexp.MustCompile("`((?:cmd|develop|docs|hostabi|internal|keystore|node|runtime|schema|sdk|state|" +
	"tests|tools)/[A-Za-z0-9_./-]+)`")

func TestDecisionsNameFilesThatExist(t *testing.T) {
	found := 0
	for name, text := range markdownFiles(t) {
		if path.Dir(name) != decisions {
			continue
		}
		for _, file := range subjectFile.FindAllStringSubmatch(text, -1) {
			found++
			if _, err := os.Stat(filepath.Join(repoRoot(t), file[1])); err != nil {
				t.Errorf("%s names %s, which does not exist", name, file[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d names were found: is the search broken?", found)
	}
}

func TestPagesAreShort(t *testing.T) {
	for name, text := range markdownFiles(t) {
		if strings.HasPrefix(name, "docs/") && len(text) > maxPageBytes {
			t.Errorf("%s has %d bytes: make pages of at most %d of it", name, len(text), maxPageBytes)
		}
	}
}

func TestAnchorsFollowTheRuleOfGitHub(t *testing.T) {
	const page = "# The `hostabi/abi` table: v1.2\n\n```\n# not a heading\n```\n\n" +
		"## A [link](other.md) & *more*\n## Über `runner_prepare`\n## Twice\n## Twice ##\n### Twice\n"
	want := []string{"the-hostabiabi-table-v12", "a-link--more", "über-runner_prepare", "twice", "twice-1", "twice-2"}
	if got := anchorsOf(page); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	const links = "[a `](b)` text\nof two lines](c.md#d) ![i](e.svg) `[f](g)`\n~~~\n[h](i)\n~~~\n" +
		"[j](https://example.com/ \"title\")\n"
	if got, want := fmt.Sprint(linksOf(links)), "[c.md#d e.svg https://example.com/]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

var (
	codeBlock  = regexp.MustCompile("(?ms)^ *```.*?^ *```|^ *~~~.*?^ *~~~")
	codeSpan   = regexp.MustCompile("(?s)`[^`\n]*(?:\n[^`\n]+)?`")
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)(?:\s+"[^"]*")?\)`)
	heading    = regexp.MustCompile(`(?m)^#{1,6} +(.*?)(?: +#+)? *$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// linksOf returns the targets of the links of a Markdown text.
func linksOf(text string) (links []*url.URL) {
	text = codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(text, ""), "")
	for _, target := range linkTarget.FindAllStringSubmatch(text, -1) {
		link, err := url.Parse(target[1])
		if err != nil {
			link = &url.URL{Path: target[1]} // which does not exist
		}
		links = append(links, link)
	}
	return links
}

// anchorsOf returns the anchors of the headings of a Markdown text: lower case, without punctuation, with "-" for
// spaces. Equal ones are numbered.
func anchorsOf(text string) (anchors []string) {
	seen := map[string]int{}
	for _, title := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.In(r, unicode.L, unicode.M, unicode.N):
				return unicode.ToLower(r)
			}
			return -1
		}, linkText.ReplaceAllString(title[1], "$1"))
		n := seen[anchor]
		seen[anchor]++
		if n > 0 {
			anchor = fmt.Sprintf("%s-%d", anchor, n)
		}
		anchors = append(anchors, anchor)
	}
	return anchors
}
