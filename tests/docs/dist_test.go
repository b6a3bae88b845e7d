package docs_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// fill fills in a template of tools/dist as tools/dist.sh does.
func fill(t *testing.T, template, sum string) string {
	t.Helper()
	text := harness.MustRead(t, harness.RepoFile("tools/dist/"+template))
	text = strings.ReplaceAll(strings.ReplaceAll(text, "@VERSION@", "v9"), "@URL@", "https://runner.example/dist/v9")
	return regexp.MustCompile(`@SHA256 [a-z]+/[a-z0-9]+@`).ReplaceAllString(text, sum)
}

// The installer takes the archive of this machine if it has the sum in the script, and nothing else.
func TestTheInstallerChecksTheSum(t *testing.T) {
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	name := "runner-v9-" + runtime.GOOS + "-" + runtime.GOARCH
	program := "#!/bin/sh\necho version 9\n"
	if err := files.WriteHeader(&tar.Header{Name: name + "/runner", Mode: 0o755, Size: int64(len(program))}); err != nil {
		t.Fatal(err)
	}
	_, _ = files.Write([]byte(program))
	_, _ = files.Close(), zipped.Close()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, content []byte) {
		if err := os.WriteFile(at(name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sum := sha256.Sum256(archive.Bytes())
	write(name+".tar.gz", archive.Bytes())
	write("install.sh", []byte(fill(t, "install.sh", hex.EncodeToString(sum[:]))))
	install := func(args ...string) (string, error) {
		cmd := exec.Command("sh", append([]string{at("install.sh"), "--to", at("bin")}, args...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, from := range []string{dir, "file://" + dir} {
		if out, err := install("--from", from); err != nil || !strings.Contains(out, "installed "+at("bin/runner")+" (v9)") {
			t.Fatalf("from %s: %v\n%s", from, err, out)
		}
		if out, err := exec.Command(at("bin/runner")).Output(); err != nil || string(out) != "version 9\n" {
			t.Errorf("the installed program: %q, %v", out, err)
		}
		if err := os.RemoveAll(at("bin")); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := install("--from", at("nowhere")); err == nil || !strings.Contains(out, "cannot download") {
		t.Errorf("without an archive: %v\n%s", err, out)
	}
	if out, err := install("--frm", dir); err == nil || !strings.Contains(out, "the argument --frm is unknown") {
		t.Errorf("with a wrong argument: %v\n%s", err, out)
	}
	write(name+".tar.gz", append(archive.Bytes(), 0))
	if out, err := install("--from", dir); err == nil || !strings.Contains(out, "has another SHA-256 than it must have") {
		t.Errorf("a changed archive: %v\n%s", err, out)
	}
	if _, err := os.Stat(at("bin")); err == nil {
		t.Error("a changed archive was installed")
	}
}

func TestTheManifestsNameTheArchives(t *testing.T) {
	sum := strings.Repeat("0f", 32)
	var scoop struct {
		Architecture map[string]struct{ URL, Hash string }
	}
	if err := json.Unmarshal([]byte(fill(t, "scoop.json", sum)), &scoop); err != nil {
		t.Fatal(err)
	}
	if got := scoop.Architecture["64bit"]; got.URL != "https://runner.example/dist/v9/runner-v9-windows-amd64.zip" || got.Hash != sum {
		t.Errorf("Scoop gets %+v", got)
	}
	formula := fill(t, "homebrew.rb", sum)
	for _, target := range []string{"darwin-arm64", "darwin-amd64", "linux-arm64", "linux-amd64"} {
		if !strings.Contains(formula, `url "https://runner.example/dist/v9/runner-v9-`+target+`.tar.gz"`+"\n      sha256 \""+sum+`"`) {
			t.Errorf("the formula does not name the archive of %s", target)
		}
	}
}
