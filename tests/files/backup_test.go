package files_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestABackupHasTheFilesOfRowsUnlessTheyAreLeftOut(t *testing.T) {
	a, s := serveUploads(t)
	body, kind := formOf(part{"title", "", "", "one"}, part{"photo", "a.txt", "", "the text"})
	s.Want(201, nil, "POST", "/v1/posts", body, "Content-Type: "+kind)
	pepper := filepath.Join(a.Dir, "data", "pepper")
	for _, c := range []struct {
		name, flag, says string
		status           int
	}{
		{"all", "", "files of rows  all", 200},
		{"rows", "--without-files", "files of rows  without their contents", 500},
	} {
		file := filepath.Join(t.TempDir(), c.name+".backup")
		args := []string{"backup", file}
		if c.flag != "" {
			args = append(args, c.flag)
		}
		if out := a.Must(args...); !strings.Contains(out, c.says) {
			t.Errorf("backup %s prints:\n%s", c.flag, out)
		}
		if out := a.Must("backup", "verify", file, "--pepper", pepper); !strings.Contains(out, "blobs") {
			t.Errorf("the verification of %s prints:\n%s", c.name, out)
		}
		data := filepath.Join(t.TempDir(), "data")
		a.Must("restore", file, "--data", data, "--pepper", pepper)
		restored := a.Serve("--data", data)
		var got row
		restored.Want(c.status, &got, "GET", "/v1/posts/one", "")
		if c.status == 200 && got.Text != "the text" {
			t.Errorf("after restore the file has %q", got.Text)
		}
		restored.Stop()
	}
}
