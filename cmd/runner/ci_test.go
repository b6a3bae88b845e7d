package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"runner.example/cmd/runner/cli"
)

// The pipelines of docs/ci.md are valid YAML, their scripts are valid for a shell, and their commands exist.
func TestThePipelinesOfTheDocumentationAreValid(t *testing.T) {
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	root := (&program{&cli.CLI{}}).root()
	files, commands := 0, map[string]int{}
	for _, block := range fence.FindAllStringSubmatch(string(page), -1) {
		if block[1] != "yaml" {
			continue
		}
		files++
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(block[2]), &document); err != nil {
			t.Errorf("%v\n%s", err, block[2])
			continue
		}
		for _, script := range scriptsOf(&document, "") {
			if bash, err := exec.LookPath("bash"); err == nil {
				check := exec.Command(bash, "-n")
				check.Stdin = strings.NewReader(script)
				if out, err := check.CombinedOutput(); err != nil {
					t.Errorf("%v: %s\n%s", err, out, script)
				}
			}
			for _, m := range invoked.FindAllStringSubmatch(script, -1) {
				commands[strings.Fields(m[1])[0]]++
				if wrong := wrongCommand(root, m[1]); wrong != "" {
					t.Errorf("runner %s: %s", m[1], wrong)
				}
			}
		}
	}
	if files < 3 || commands["fmt"] < 2 || commands["check"] < 2 || commands["test"] < 2 || commands["deploy"] < 4 {
		t.Errorf("%d files with the commands %v were found", files, commands)
	}
}

// scriptsOf returns the scripts of a pipeline: the texts and the elements of lists with such a key.
func scriptsOf(n *yaml.Node, key string) (scripts []string) {
	isScript := key == "run" || key == "script" || key == "before_script"
	switch {
	case n.Kind == yaml.ScalarNode && isScript:
		return []string{n.Value}
	case n.Kind == yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			scripts = append(scripts, scriptsOf(n.Content[i+1], n.Content[i].Value)...)
		}
	case n.Kind == yaml.SequenceNode && isScript: // one script of several lines
		var lines []string
		for _, line := range n.Content {
			lines = append(lines, line.Value)
		}
		return []string{strings.Join(lines, "\n")}
	default:
		for _, child := range n.Content {
			scripts = append(scripts, scriptsOf(child, "")...)
		}
	}
	return scripts
}
