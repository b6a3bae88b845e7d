package harness

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// PythonTypeChecker returns the path of pyright.
var PythonTypeChecker = sync.OnceValues(func() (string, error) {
	out, err := exec.Command(RepoFile("tools/fetch-pyright.sh")).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", errors.New(string(exit.Stderr))
	}
	return strings.TrimSpace(string(out)), err
})

// CheckPython runs pyright with a configuration in the app's directory, and returns its messages,
// warnings too, by file:line.
func CheckPython(t *testing.T, a *App, config string) map[string]string {
	t.Helper()
	pyright, err := PythonTypeChecker()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(pyright, "--outputjson", "-p", config)
	cmd.Dir = a.Dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(node(t))) // without a Python, whose packages it would find
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
		t.Fatalf("%v: %s", err, out)
	}
	var found struct {
		Diagnostics []struct {
			File, Message, Rule string
			Range               struct{ Start struct{ Line int } }
		} `json:"generalDiagnostics"`
		Summary struct{ FilesAnalyzed int }
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if found.Summary.FilesAnalyzed == 0 {
		t.Fatal("pyright has checked no file")
	}
	said := map[string]string{}
	for _, d := range found.Diagnostics {
		file, err := filepath.Rel(a.Dir, d.File)
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.ToSlash(file) + ":" + strconv.Itoa(d.Range.Start.Line+1)
		said[at] += d.Message + " (" + d.Rule + ")\n"
	}
	return said
}

func node(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
