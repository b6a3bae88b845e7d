package operations_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// disturbed is a node on which deployments are cut short by kills. It keeps two releases, so each
// deployment also deletes one, with its files.
type disturbed struct {
	*edge
	t        *testing.T
	releases int           // so many were made
	took     time.Duration // of the last deployment, until the server ended
}

// releases lists the releases of the node.
func (d *disturbed) list() (list releaseList) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.app.Must("releases", "--json", "--data", d.data)), &list); err != nil {
		d.t.Fatal(err)
	}
	return list
}

// blobs returns the names of the files of the store's blobs, in order.
func (d *disturbed) blobs() (names []string) {
	d.t.Helper()
	entries, err := os.ReadDir(filepath.Join(d.data, "blobs"))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// isSwept reports that there are no other blobs than those of the releases.
func (d *disturbed) isSwept() bool {
	named := map[string]bool{}
	for _, r := range d.list().Releases {
		for _, f := range r.Files {
			named[f.SHA256] = true
		}
	}
	return !slices.ContainsFunc(d.blobs(), func(name string) bool { return !named[name] })
}

// ageBlobs makes all blobs two hours old: a sweep deletes those that no release names.
func (d *disturbed) ageBlobs() {
	d.t.Helper()
	then := time.Now().Add(-2 * time.Hour)
	for _, name := range d.blobs() {
		if err := os.Chtimes(filepath.Join(d.data, "blobs", name), then, then); err != nil {
			d.t.Fatal(err)
		}
	}
}

// disturbance is when the server is killed during a deployment; the zero value: when all is done.
type disturbance struct {
	step  int           // before this step, counted from 1
	after time.Duration // without a step: after this time
}

// deploy deploys a new release while the server is killed. Then it starts the server again, checks
// what it serves, and deploys the release again. It returns the steps of the server, unless it was
// killed after a time.
func (d *disturbed) deploy(kill disturbance) (steps []string) {
	t := d.t
	t.Helper()
	d.releases++
	mark := fmt.Sprint(2000 + d.releases)
	a := markedApp(t, mark, "")
	d.ageBlobs()
	before := d.list()
	served := d.mark()
	wait := func() []string { return nil }
	if kill.after > 0 {
		defer time.AfterFunc(kill.after, d.Kill).Stop()
	} else {
		wait = d.FollowSteps(d.data, kill.step).Wait
	}
	began := time.Now()
	first := d.run(a, "deploy", "--yes")
	d.waitForSweep(before.Active.Previous)
	d.took = time.Since(began)
	d.Kill()
	steps = wait()
	if kill == (disturbance{}) && first.Status != 0 {
		t.Fatalf("undisturbed: %d %s", first.Status, first.Stderr)
	}

	d.start()
	after := d.list()
	want := served
	if after.Active.ID != before.Active.ID {
		want = mark
	}
	if got := d.mark(); got != want || first.Status == 0 && want != mark {
		t.Errorf("%s is served and %s active, and not %s; the deployment ended with %d", got, after.Active.ID, want, first.Status)
	}
	for _, r := range after.Releases {
		if r.ID != after.Active.ID && r.ID != after.Active.Previous {
			continue // the sweep may have deleted it meanwhile
		}
		for _, f := range r.Files {
			sum := sha256.Sum256([]byte(harness.MustRead(t, filepath.Join(d.data, "blobs", f.SHA256))))
			if hex.EncodeToString(sum[:]) != f.SHA256 {
				t.Errorf("%s of %s is damaged", f.Name, r.ID)
			}
		}
	}
	for _, name := range d.blobs() {
		if len(name) != 2*sha256.Size {
			t.Errorf("a file that was not completed is left: %s", name)
		}
	}
	d.app.Must("audit", "verify", "--data", d.data)
	again := d.must(a, "deploy", "--yes")
	if now := d.list().Active.ID; now != again.After || d.mark() != mark {
		t.Errorf("deployed again: %s is active, and not %s", now, again.After)
	}
	d.WaitUntil("old releases are deleted", d.isSwept)
	return steps
}

// mark returns the mark of the release that is served.
func (d *disturbed) mark() string {
	d.t.Helper()
	got := d.Do("GET", "/release/x", "")
	mark, err := markOf([]byte(got.Body))
	if got.Status != 200 || err != nil {
		d.t.Errorf("%d, %v", got.Status, err)
	}
	return mark
}

// waitForSweep waits until a release and its files are deleted, or the server has ended.
func (d *disturbed) waitForSweep(id string) {
	d.t.Helper()
	late := time.After(harness.Timeout)
	for {
		_, rest, ok := strings.Cut(d.Stderr.String(), `"msg":"release deleted","release":"`+id+`"`)
		if ok && strings.Count(rest, `"msg":"blob deleted"`) == 2 {
			return
		}
		select {
		case <-d.Ended:
			return
		case <-late:
			d.t.Fatalf("release %s is not deleted within %s\n%s", id, harness.Timeout, d.Stderr.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// The server is killed before each step of a deployment in which it changes a file: of the upload, of
// the activation, and of the sweep after it. It is also killed at random times, as the store changes
// mapped files too, which are no steps. It then serves what the pointer names, no file of a release is
// missing, and the deployment can be repeated. The short form does this for a few steps and times.
func TestAKillAtAnyStepOfADeploymentLosesNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	d := &disturbed{edge: startEdge(t, "RUNNER_RELEASE_KEEP=1"), t: t}
	for _, mark := range []string{"1998", "1999"} {
		d.must(markedApp(t, mark, ""), "deploy", "--yes")
	}
	steps := d.deploy(disturbance{})
	names := map[string]int{}
	for _, step := range steps {
		if name, _, ok := strings.Cut(step, "blobs/"); ok {
			step = name + "blobs/…"
		}
		names[step]++
	}
	t.Logf("%d steps: %v", len(steps), names)
	var kills []disturbance
	for step := range len(steps) {
		kills = append(kills, disturbance{step: step + 1})
	}
	times := 100
	if !harness.Soak {
		times = 1
		random.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
		kills = kills[:2]
	}
	undisturbed := d.took // longer than without the steps
	for range times {
		kills = append(kills, disturbance{after: time.Duration(1 + random.Int64N(int64(undisturbed)))})
	}
	reached := 0
	for _, kill := range kills {
		done := d.deploy(kill)
		if t.Failed() {
			t.Fatalf("killed before step %d, after %v; or after %s", kill.step, done, kill.after)
		}
		if kill.step > 0 && len(done) >= kill.step {
			reached++
		}
	}
	t.Logf("%d kills before a step, %d at random times within %s", reached, times, undisturbed)
	if reached == 0 {
		t.Error("no step was reached")
	}
}
