package operations_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/state/store/frame"
	"runner.example/tests/harness"
)

// rewritten returns an intact backup with another content: its frames and its head go through change.
func rewritten(t *testing.T, content string, change func(head map[string]any), keep func(kind byte) bool) string {
	t.Helper()
	in, line, err := frame.NewReader(t.Context(), strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var head map[string]any
	if err := json.Unmarshal(line, &head); err != nil {
		t.Fatal(err)
	}
	change(head)
	if line, err = json.Marshal(head); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	to, err := frame.NewWriter(t.Context(), &out, line)
	if err != nil {
		t.Fatal(err)
	}
	for {
		kind, payload, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if kind == frame.End {
			break
		}
		if keep(kind) {
			if err := to.Write(kind, payload); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := to.Finish(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestADrillRestoresTheBackupAndFindsWhatCannotBeRestored(t *testing.T) {
	a, s, _ := withRows(t)
	file, pepper := a.Path("good"), a.Path("data/pepper")
	info := backUp(t, a, file)
	temporary := t.TempDir()
	drill := func(args ...string) harness.Result {
		t.Helper()
		r := a.Run(append([]string{"backup", "verify", "--dir", temporary}, args...)...)
		if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
			t.Fatalf("%q leaves %v, %v", args, left, err)
		}
		return r
	}
	// Beside the running server, with the pepper of its data directory.
	r := drill(file, "--json")
	var found struct {
		backupInfo
		Keys, Sessions, AuditRecords, Releases, Blobs int
		ActiveRelease                                 string
	}
	if err := json.Unmarshal([]byte(r.Stdout), &found); err != nil || r.Status != 0 {
		t.Fatalf("%d %s %s: %v", r.Status, r.Stdout, r.Stderr, err)
	}
	if found.backupInfo != info || found.Keys != 1 || found.AuditRecords == 0 || found.Releases != 1 || found.Blobs < 2 || found.ActiveRelease == "" {
		t.Errorf("%+v, want %+v", found, info)
	}
	for _, step := range []string{"open the restored store", "check tables and blobs", "check keys", "check the audit chain", "check releases"} {
		if !strings.Contains(r.Stderr, "runner: "+step+"\n") {
			t.Errorf("the step %q is not shown:\n%s", step, r.Stderr)
		}
	}
	s.Stop()
	// Without the app and its data.
	elsewhere := &harness.App{T: t, Dir: t.TempDir()}
	if r := elsewhere.Run("backup", "verify", file, "--pepper", pepper); r.Status != 0 || !strings.Contains(r.Stdout, "the backup can be restored\n") {
		t.Errorf("%d %s %s", r.Status, r.Stdout, r.Stderr)
	}
	if r := elsewhere.Run("backup", "verify", file); r.Status != 2 || !strings.Contains(r.Stderr, "--pepper") {
		t.Errorf("without a pepper: %d %s", r.Status, r.Stderr)
	}
	good := harness.MustRead(t, file)
	all := func(byte) bool { return true }
	same := func(map[string]any) {}
	for what, row := range map[string]struct{ content, want string }{
		"a part":         {good[:len(good)/2], "invalid backup"},
		"another head":   {rewritten(t, good, func(h map[string]any) { h["auditHead"] = "1:" + strings.Repeat("0", 64) }, all), "check the audit chain"},
		"another commit": {rewritten(t, good, func(h map[string]any) { h["sequence"] = info.Sequence + 1 }, all), "newest commit"},
		"no files":       {rewritten(t, good, same, func(kind byte) bool { return kind == frame.Keys }), "lacks the contents"},
	} {
		a.Write("bad", row.content)
		if what != "a part" {
			a.Must("backup", "--check", a.Path("bad")) // --check cannot know
		}
		if r := drill(a.Path("bad"), "--pepper", pepper); r.Status != 3 || !strings.Contains(r.Stderr, row.want) {
			t.Errorf("%s: %d %s, want %q", what, r.Status, r.Stderr, row.want)
		}
	}
	a.Write("other pepper", strings.Repeat("0", 64)+"\n")
	if r := drill(file, "--pepper", a.Path("other pepper")); r.Status != 3 || !strings.Contains(r.Stderr, "pepper") {
		t.Errorf("another pepper: %d %s", r.Status, r.Stderr)
	}
	if r := drill(a.Path("absent"), "--pepper", pepper); r.Status != 4 {
		t.Errorf("no file: %d %s", r.Status, r.Stderr)
	}
}

func TestABackupIntoADirectoryKeepsByDaysAndWeeks(t *testing.T) {
	a, _, _ := withRows(t)
	dir := t.TempDir()
	type answer struct {
		backupInfo
		Kept, Deleted []string
	}
	run := func(keep string) (got answer) {
		t.Helper()
		if err := json.Unmarshal([]byte(a.Must("backup", dir, "--keep", keep, "--json")), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := run("7d,4w")
	if want := filepath.Join(dir, "shop-"+first.Created.Format("20060102T150405Z")+".backup"); first.File != want || len(first.Kept) != 1 || len(first.Deleted) != 0 {
		t.Fatalf("%+v, want %s", first, want)
	}
	a.Must("backup", "--check", first.File)
	// Backups of the days before, as their heads say.
	content := harness.MustRead(t, first.File)
	if err := os.Remove(first.File); err != nil {
		t.Fatal(err)
	}
	var names []string
	for day := 40; day > 0; day-- {
		at := first.Created.AddDate(0, 0, -day)
		name := "shop-" + at.Format("20060102T150405Z") + ".backup"
		names = append(names, name)
		old := rewritten(t, content, func(h map[string]any) { h["created"] = at.Format(time.RFC3339) }, func(byte) bool { return true })
		if err := os.WriteFile(filepath.Join(dir, name), []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "readme"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := run("3d")
	want := append(slices.Clone(names[38:]), filepath.Base(got.File))
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if !slices.Equal(got.Kept, want) || !slices.Equal(got.Deleted, names[:38]) || !slices.Equal(left, append([]string{"readme"}, want...)) {
		t.Errorf("%+v\nleft are %q, want %q", got, left, want)
	}
	for _, args := range [][]string{
		{a.Path("b"), "--keep", "7x"}, {a.Path("b"), "--keep", ""}, {"-", "--keep", "7d"}, {dir, "--keep", "7d", "--force"}, {dir, "--keep", "7d", "--check"},
	} {
		if r := a.Run(append([]string{"backup"}, args...)...); r.Status != 2 && r.Status != 3 {
			t.Errorf("%q: %d %s", args, r.Status, r.Stderr)
		}
	}
	for path, want := range map[string]string{a.Path("app.schema"): "is not a directory", a.Path("absent"): "does not exist: create it first"} {
		if r := a.Run("backup", path, "--keep", "7d"); r.Status != 1 || !strings.Contains(r.Stderr, want) {
			t.Errorf("%q: %d %s", path, r.Status, r.Stderr)
		}
	}
}
