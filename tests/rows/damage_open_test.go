package rows_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// dataCopy is a copy of an app's data directory.
type dataCopy struct {
	dir    string
	places []position // one in each part of 4096 bytes that is not all zeros
}

// saveData copies the data directory of an app without a running server, except the shared
// compiled modules.
func saveData(a *harness.App) *dataCopy {
	a.T.Helper()
	d := &dataCopy{dir: filepath.Join(a.T.TempDir(), "data")}
	_ = os.Remove(a.Path("data/runner.sock")) // left by a killed server
	if err := os.Remove(a.Path("data/cache")); err != nil {
		a.T.Fatal(err)
	}
	copyDirectory(a.T, a.Path("data"), d.dir)
	a.ShareCode()
	const part = 4096
	zero := make([]byte, part)
	err := filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		all, err := os.ReadFile(path)
		name, _ := filepath.Rel(d.dir, path)
		for at := 0; at < len(all); at += part {
			if b := all[at:min(at+part, len(all))]; !bytes.Equal(b, zero[:len(b)]) {
				d.places = append(d.places, position{name, int64(at)})
			}
		}
		return err
	})
	if err != nil {
		a.T.Fatal(err)
	}
	return d
}

// putData restores the app's data directory from the copy.
func putData(a *harness.App, d *dataCopy) {
	a.T.Helper()
	if err := os.RemoveAll(a.Path("data")); err != nil {
		a.T.Fatal(err)
	}
	copyDirectory(a.T, d.dir, a.Path("data"))
	a.ShareCode()
}

func copyDirectory(t testing.TB, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", "--sparse=always", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// change flips one bit in one of the files, which are chosen with equal probability.
func (d *dataCopy) change(t *testing.T, random *rand.Rand, dir string) (what string) {
	t.Helper()
	files := map[string][]position{}
	var names []string
	for _, p := range d.places {
		if files[p.path] == nil {
			names = append(names, p.path)
		}
		files[p.path] = append(files[p.path], p)
	}
	name := names[random.IntN(len(names))]
	p := files[name][random.IntN(len(files[name]))]
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	p = position{path, p.at + random.Int64N(min(4096, info.Size()-p.at))}
	bit := random.IntN(8)
	p.flip(t, bit)
	return fmt.Sprintf("bit %d of byte %d of %s", bit, p.at, name)
}

// One byte of a file is changed after a stop or a kill. The server then refuses to start,
// with exit status 3 and the name of the file, or every response is correct or 503.
func TestNoDamagedByteOfADataDirectoryIsServed(t *testing.T) {
	t.Parallel()
	tries := 6
	if harness.Soak {
		tries = 500
	}
	a := censusApp(t)
	s := a.Serve()
	var live, revoked []harness.APIKey
	for i := range 15 {
		key := a.Key("create", "--scope", "teller", "--name", strconv.Itoa(i))
		if i < 2 {
			live = append(live, key)
			continue
		}
		a.Must("api-keys", "revoke", key.ID)
		revoked = append(revoked, key)
	}
	s.Stop()
	head := strings.TrimSpace(a.Must("audit", "verify"))
	stopped := saveData(a)

	s = a.Serve()
	const added = 40
	for i := range added {
		if got := s.Do("POST", fmt.Sprintf("/add/more-%d", i), "", "X-API-Key: "+live[0].Token); got.Body != `"added"` {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
	}
	last := a.Key("create", "--scope", "teller", "--name", "last")
	a.Must("api-keys", "revoke", last.ID)
	s.Kill()
	killed := saveData(a)

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, row := range []struct {
		name    string
		data    *dataCopy
		rows    int
		revoked []harness.APIKey
	}{{"stopped", stopped, censusRows, revoked}, {"killed", killed, censusRows + added, append(revoked, last)}} {
		refused, served := 0, 0
		for try := range tries + 1 {
			putData(a, row.data)
			what := "nothing"
			if try > 0 {
				what = row.data.change(t, random, a.Path("data"))
			}
			s := a.Launch("serve")
			if s.URL == "" {
				refused++
				log := s.Stderr.String()
				if status := s.Cmd.ProcessState.ExitCode(); try == 0 || status != 3 || !strings.Contains(log, `"data/`) {
					t.Errorf("%s, %s changed: exit status %d\n%s", row.name, what, status, log)
				}
				continue
			}
			served++
			for _, wrong := range census(s, row.rows, live, row.revoked) {
				t.Errorf("%s, %s changed: %s", row.name, what, wrong)
			}
			if r := a.Run("audit", "verify", "--head", head); r.Status != 0 && try == 0 {
				t.Errorf("%s: audit verify: %d %s", row.name, r.Status, r.Stderr)
			}
			s.Kill()
		}
		t.Logf("%s: refused %d times, served %d times", row.name, refused, served)
	}
}

// census requests everything that can be lost, and returns the responses that are neither
// correct nor 503.
func census(s *harness.Server, rows int, live, revoked []harness.APIKey) (wrong []string) {
	s.T.Helper()
	ask := func(method, path string, key harness.APIKey, status int, want string) {
		got := s.Do(method, path, "", "X-API-Key: "+key.Token)
		if got.Status != 503 && (got.Status != status || want != "" && got.Body != want) {
			wrong = append(wrong, fmt.Sprintf("%s %s: %d %s", method, path, got.Status, got.Body))
		}
	}
	count := strconv.Itoa(rows)
	for _, key := range live {
		ask("GET", "/all?by=name&direction=asc", key, 200, count)
		ask("GET", "/all?by=n&direction=desc", key, 200, count)
		ask("GET", "/count", key, 200, count)
		ask("GET", "/find/item-000", key, 200, `"there"`)
		ask("POST", "/add/item-150", key, 200, `"refused"`)
	}
	for _, key := range revoked {
		ask("GET", "/count", key, 401, "")
	}
	return wrong
}
