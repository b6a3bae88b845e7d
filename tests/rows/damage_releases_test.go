package rows_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

const releasedSchema = `app released
routes("/", auth: none, rateLimit: none) { GET /hello -> hello }
`

// releasedApp is an app directory whose data directory has two releases. The second one, which also
// has /second, is active, and not the app directory.
func releasedApp(t *testing.T) *harness.App {
	t.Helper()
	a := harness.NewApp(t, releasedSchema, "", "small")
	a.ShareCode()
	s := a.Serve()
	a.Write("second.schema", "routes(\"/second\", auth: none, rateLimit: none) { GET / -> hello }\n")
	a.Must("deploy", "--yes")
	s.Want(200, nil, "GET", "/second", "")
	s.Stop()
	a.Write("second.schema", "routes(\"/third\", auth: none, rateLimit: none) { GET / -> hello }\n")
	return a
}

// releasesOfNode is what runner releases --json prints.
type releasesOfNode struct {
	Active   struct{ ID, Previous string }
	Releases []struct {
		ID    string
		Files []struct{ Name, SHA256 string }
	}
}

// One byte of any file of a release is changed. If the release is the active one, the server starts
// and is not ready; otherwise its activation is refused. runner audit verify finds it in both cases.
func TestAChangedByteOfAReleaseIsFound(t *testing.T) {
	t.Parallel()
	tries := 1
	if harness.Soak {
		tries = 100
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	a := releasedApp(t)
	var list releasesOfNode
	if err := json.Unmarshal([]byte(a.Must("releases", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	uses := map[string]map[string]string{} // the file's name, by digest and id of the release
	for _, r := range list.Releases {
		for _, f := range r.Files {
			if uses[f.SHA256] == nil {
				uses[f.SHA256] = map[string]string{}
			}
			uses[f.SHA256][r.ID] = f.Name
		}
	}
	if len(list.Releases) != 2 || len(uses) != 3 {
		t.Fatalf("%+v", list)
	}
	saved := saveData(a)
	for digest, names := range uses {
		for range tries {
			putData(a, saved)
			path := filepath.Join(a.Path("data/blobs"), digest)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			p := position{path, random.Int64N(info.Size())}
			p.flip(t, random.IntN(8))
			what := fmt.Sprintf("byte %d of %s", p.at, digest)
			if r := a.Run("audit", "verify"); r.Status != 3 || !strings.Contains(r.Stderr, digest) {
				t.Errorf("%s: audit verify: %d %s", what, r.Status, r.Stderr)
			}
			s := a.Serve()
			if file, ofActive := names[list.Active.ID]; ofActive {
				s.Want(503, nil, "GET", "/_health/ready", "")
				s.Want(503, nil, "GET", "/hello", "")
				if log := s.Stderr.String(); !strings.Contains(log, "active release cannot be read") || !strings.Contains(log, digest) || !strings.Contains(log, file) {
					t.Errorf("%s: %s", what, log)
				}
			} else {
				s.Want(200, nil, "GET", "/_health/ready", "")
				r := a.Run("rollback")
				if r.Status != 6 || !strings.Contains(r.Stderr, digest) || !strings.Contains(r.Stderr, names[list.Active.Previous]) {
					t.Errorf("%s: rollback: %d %s", what, r.Status, r.Stderr)
				}
				s.Want(200, nil, "GET", "/second", "")
			}
			s.Stop()
		}
	}
}

// One byte of any file of a data directory with releases is changed. The server then refuses to start
// and names the file, or all that it serves and lists is as before, or refused.
func TestAChangedByteOfADataDirectoryShowsNoOtherRelease(t *testing.T) {
	t.Parallel()
	tries := 5
	if harness.Soak {
		tries = 500
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	a := releasedApp(t)
	want := a.Must("releases", "--json")
	saved := saveData(a)
	refused, served := 0, 0
	for range tries {
		putData(a, saved)
		what := saved.change(t, random, a.Path("data"))
		s := a.Launch("serve")
		if s.URL == "" {
			refused++
			if log := s.Stderr.String(); s.Cmd.ProcessState.ExitCode() != 3 || !strings.Contains(log, `"data/`) {
				t.Errorf("%s changed: exit status %d\n%s", what, s.Cmd.ProcessState.ExitCode(), log)
			}
			continue
		}
		served++
		for path, status := range map[string]int{"/hello": 200, "/second": 200, "/third": 404} {
			if got := s.Do("GET", path, ""); got.Status != status && got.Status != 503 {
				t.Errorf("%s changed: %s: %d %s", what, path, got.Status, got.Body)
			}
		}
		if r := a.Run("releases", "--json"); r.Status == 0 && r.Stdout != want {
			t.Errorf("%s changed: releases: %s", what, r.Stdout)
		}
		s.Kill()
	}
	t.Logf("refused %d times, served %d times", refused, served)
}
