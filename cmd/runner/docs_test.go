package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
)

var (
	// fence is a block of code: its language, and its text.
	fence = regexp.MustCompile("(?ms)^ *```([a-z]*)[^\n]*\n(.*?)^ *```")
	// inline is a command in the middle of a sentence, which may continue on the next line.
	inline = regexp.MustCompile("`(runner [^`]+)`")
	// invoked is a command of a block: at the beginning of a line, or where a shell expects a command.
	invoked = regexp.MustCompile(`(?m)(?:^ *(?:\$ )?|[|;&(] *|sudo (?:-u \w+ )?|exec )runner ((?:[^\n\\]|\\\n)+)`)
	// commandEnd is where a shell ends a command.
	commandEnd = regexp.MustCompile(`[|;&)>#\n]| <`)
	// requiredFlags are the flags in the usage of a command.
	requiredFlags = regexp.MustCompile(`( \|)? --\S+ <[^>]*>`)
	// noCommands begin what is not typed: a line that is signed, a process of the server, a version.
	noCommands = regexp.MustCompile(`^(release signature|compile-module|v\d)`)
	// wordForm is a word of a command, with quoted parts.
	wordForm = regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"(?:[^"\\]|\\.)*")+`)
)

// Every command of the documentation exists, and has the flags that stand there.
func TestTheCommandsOfTheDocumentationExist(t *testing.T) {
	root := (&program{&cli.CLI{}}).root()
	root.InitDefaultCompletionCmd()
	checked := 0
	check := func(page, text string) {
		if noCommands.MatchString(text) {
			return
		}
		checked++
		if wrong := wrongCommand(root, text); wrong != "" {
			t.Errorf("%s: runner %s: %s", page, strings.Join(strings.Fields(text), " "), wrong)
		}
	}
	err := filepath.WalkDir("../../docs", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" || strings.Contains(path, "/docs/cli/") { // generated from the commands
			return err
		}
		page, err := os.ReadFile(path)
		for _, block := range fence.FindAllStringSubmatch(string(page), -1) {
			if block[1] == "text" || block[1] == "json" {
				continue
			}
			for _, m := range invoked.FindAllStringSubmatch(block[2], -1) {
				check(path, m[1])
			}
		}
		for _, m := range inline.FindAllStringSubmatch(fence.ReplaceAllString(string(page), ""), -1) {
			check(path, strings.TrimPrefix(m[1], "runner "))
		}
		return err
	})
	if err != nil || checked < 100 {
		t.Fatalf("%d commands were found: %v", checked, err)
	}
}

// The test above finds what is wrong.
func TestWrongCommandsOfTheDocumentationAreFound(t *testing.T) {
	root := (&program{&cli.CLI{}}).root()
	for text, want := range map[string]string{
		"releases list":                               `"list"`,
		"keys crate --name ci":                        `"crate"`,
		"deply":                                       `"deply"`,
		"api-keys create --scop a":                    "--scop",
		"status -z":                                   "-z",
		"api-keys create --scope a | runner x":        "",
		"serve --listen=:80 --data <dir>":             "",
		"data each Note --call f --where 'a = 1 | 2'": "",
	} {
		if got := wrongCommand(root, text); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("runner %s: %q, want %q", text, got, want)
		}
	}
}

// wrongCommand says what is wrong about the command that text begins with; "" if it exists.
func wrongCommand(root *cobra.Command, text string) string {
	var args []string
	for _, word := range wordForm.FindAllString(strings.ReplaceAll(text, "\\\n", " "), -1) {
		if !strings.ContainsAny(word, `'"`) && commandEnd.MatchString(" "+word) && !strings.HasPrefix(word, "<") {
			break
		}
		args = append(args, word)
	}
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err.Error()
	}
	own := requiredFlags.ReplaceAllString(cmd.Use, "")
	takes := strings.Contains(own, " ") // arguments, besides flags
	for i := 0; i < len(rest); i++ {
		name, _, given := strings.Cut(rest[i], "=")
		flag := cmd.Flag(strings.TrimPrefix(name, "--"))
		if !strings.HasPrefix(name, "--") && strings.HasPrefix(name, "-") && len(name) > 1 {
			if flag = cmd.Flags().ShorthandLookup(name[1:2]); flag == nil {
				flag = cmd.InheritedFlags().ShorthandLookup(name[1:2])
			}
		}
		switch {
		case name == "--", strings.ContainsAny(name, "…["): // a placeholder
			return ""
		case name == "--help", name == "-h", name == "-", strings.HasPrefix(name, "$"):
		case strings.HasPrefix(name, "-"):
			if flag == nil {
				return "it has no flag " + name
			}
			if !given && flag.NoOptDefVal == "" {
				i++ // its value
			}
		case strings.HasPrefix(name, "<") && cmd.HasSubCommands(): // one of the commands
			return ""
		case !takes:
			return fmt.Sprintf("it does not take %q", name)
		}
	}
	return ""
}
