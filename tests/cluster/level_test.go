package cluster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// refused runs a command that is refused with an exit status, and wants texts in its error.
func refused(a *harness.App, status int, args []string, texts ...string) {
	a.T.Helper()
	r := a.Run(args...)
	if r.Status != status || slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(r.Stderr, text) }) {
		a.T.Errorf("runner %s: exit status %d, want %d and %q:\n%s%s", strings.Join(args, " "), r.Status, status, texts, r.Stdout, r.Stderr)
	}
}

// levelOn returns what `runner level show` says on a node.
func levelOn(n *harness.Node) (level int) {
	n.T.Helper()
	var o struct{ Level int }
	out := n.Must("level", "show", "--json")
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		n.T.Fatalf("read %q: %v", out, err)
	}
	return o.Level
}

// A cluster is upgraded to a runner with another format of the log, node by node, goes back, is upgraded
// again, and only then raises the level. Clients write all the time.
func TestALevelIsRaisedAfterARollingUpgrade(t *testing.T) {
	next := harness.NextLevelBuild(t)
	l := loadedCluster(t, nil, 3, 0)
	nodes := l.cluster.Nodes
	l.run()
	upgrade := func() {
		t.Helper()
		l.roll(func(node int) {
			if node > 0 { // some are upgraded, and this one does not run
				refused(nodes[0].App, 5, []string{"level", "raise"}, "the level stays 1, because not all nodes know level 2: ",
					"node "+nodes[node].Name+" does not answer: start it, or remove it with runner cluster leave "+nodes[node].Name)
			}
			if node == 1 {
				refused(nodes[0].App, 5, []string{"level", "raise"}, "node n3 (runner ", " knows level 1: install a newer runner there")
			}
			nodes[node].Binary = next
		})
	}
	upgrade()
	l.roll(func(node int) { nodes[node].Binary = "" })
	if out := nodes[0].Must("level", "raise"); out != "the level is 1 already\n" {
		t.Errorf("with the first runner again: %s", out)
	}
	upgrade()

	backup := nodes[0].Path("level1.backup")
	nodes[0].Must("backup", backup)
	if out := nodes[1].Must("level", "raise"); out != "level raised from 1 to 2\n" {
		t.Errorf("raised: %s", out)
	}
	raised := l.now()
	for i, n := range nodes {
		l.writtenSince(raised, i)
		n.Server.WaitUntil(n.Name+" has the level", func() bool { return levelOn(n) == 2 })
	}
	if out := nodes[0].Must("cluster", "status", "--json"); !strings.Contains(out, `"level": 2`) || strings.Count(out, `"newest": 2`) != 3 {
		t.Errorf("the state of the cluster: %s", out)
	}
	audited := false
	for _, r := range nodes[0].Audit(t) {
		audited = audited || r["action"] == "level.raise" && r["target"] == "2" && r["node"] == nodes[1].Name
	}
	if !audited {
		t.Error("the audit has no record of the raise")
	}

	// A runner that does not know the level is refused, and says what to do.
	remedy := "the data has level 2, and this runner knows level 1: install "
	l.terminate(2)
	nodes[2].Binary = ""
	refused(nodes[2].App, 3, []string{"serve", "--listen", "127.0.0.1:0"}, remedy)
	nodes[2].Binary = next
	l.start(2)
	l.writtenSince(l.now(), 2)

	token := strings.TrimSpace(nodes[0].Must("cluster", "invite", "--edge"))
	joins := newLedger(t)
	if err := os.RemoveAll(joins.Path("data")); err != nil {
		t.Fatal(err)
	}
	join := []string{"cluster", "join", token, "--name", "n4", "--listen", harness.LoopbackHost() + ":9400"}
	refused(joins, 5, join, "the cluster has level 2, and the runner of the machine that joins knows level 1: install runner ")
	joins.Binary = next
	joins.Must(join...) // the invitation was not used

	after := nodes[0].Path("level2.backup")
	nodes[0].Must("backup", after)
	restored := newLedger(t)
	pepper := nodes[0].Path("data/pepper")
	refused(restored, 3, []string{"restore", after, "--data", restored.Path("restored"), "--pepper", pepper}, remedy)
	restored.Must("restore", backup, "--data", restored.Path("restored"), "--pepper", pepper)

	nodes[0].Must("cluster", "leave", "n4")
	l.check()
}

// The data directory of a standalone server is upgraded and downgraded in the same way.
func TestALevelOfAStandaloneServerIsRaised(t *testing.T) {
	next := harness.NextLevelBuild(t)
	a := newLedger(t)
	key := a.Key("create", "--scope", "worker", "--name", "k")
	uses := 0
	use := func(binary string) {
		t.Helper()
		uses++
		a.Binary = binary
		server := a.Serve()
		if got := server.Do("POST", "/transact", fmt.Sprintf(`{"name":"%d","read":[],"write":[]}`, uses), "X-API-Key: "+key.Token); got.Status != 201 {
			t.Errorf("%d %s", got.Status, got.Body)
		}
		server.Stop()
	}
	use("")
	use(next)
	use("")
	a.Binary = next
	if out := a.Must("level", "show"); !strings.Contains(out, "level  1\n") || !strings.Contains(out, "1 to 2") || !strings.Contains(out, "ready for level 2") {
		t.Errorf("shown: %s", out)
	}
	if out := a.Must("level", "raise"); out != "level raised from 1 to 2\n" {
		t.Errorf("raised: %s", out)
	}
	use(next)
	a.Binary = ""
	refused(a, 3, []string{"serve", "--listen", "127.0.0.1:0"}, "the data has level 2, and this runner knows level 1: install ")
	refused(a, 3, []string{"api-keys", "list"}, "the data has level 2, and this runner knows level 1: install ")
	a.Binary = next
	if r := a.Run("level", "raise", "3"); r.Status != 3 || !strings.Contains(r.Stderr, "this runner knows levels 1 to 2, and not level 3") {
		t.Errorf("raised to an unknown level: %+v", r)
	}
	refused(a, 5, []string{"level", "raise", "1"}, "the level is 2 already, and cannot be lowered")
}

var (
	shellBlock  = regexp.MustCompile("(?ms)^( *)```sh\n(.*?)^ *```\n(?:\n *```\n(.*?)^ *```\n)?")
	versionText = regexp.MustCompile(`v[0-9]+\.[0-9]+\.[0-9]+[-+0-9a-z.]* |devel `)
)

// The commands of docs/upgrade.md, with the runner of the next level on the data of the tested one, print what the
// page says.
func TestTheUpgradePageRunsAsPrinted(t *testing.T) {
	a := newLedger(t)
	a.Key("create", "--scope", "worker", "--name", "k")
	bin := t.TempDir()
	if err := os.Symlink(harness.NextLevelBuild(t), filepath.Join(bin, "runner")); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(harness.RepoFile("docs/upgrade.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := shellBlock.FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 4 {
		t.Fatalf("the page has %d blocks of commands", len(blocks))
	}
	words := func(text string) []string { return strings.Fields(versionText.ReplaceAllString(text, "VERSION ")) }
	for _, block := range blocks {
		cmd := exec.CommandContext(t.Context(), "bash", "-ec", strings.ReplaceAll(block[2], "/var/lib/runner/data", a.Path("data")))
		cmd.Dir, cmd.Env = a.Dir, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", block[2], err, out)
		}
		printed := block[3]
		if strings.Contains(block[2], "runner version") { // with the commit and the machine of the reader
			if !strings.HasSuffix(printed, ", levels 1 to 2)\n") || !strings.HasSuffix(string(out), ", levels 1 to 2)\n") {
				t.Errorf("the page prints %s, and the runner %s", printed, out)
			}
			continue
		}
		if printed != "" && !slices.Equal(words(string(out)), words(printed)) {
			t.Errorf("%s prints\n%sand on the page\n%s", block[2], out, printed)
		}
	}
	if out := a.Must("version", "--json"); !strings.Contains(out, `"newest": 1`) {
		t.Errorf("the runner that is tested: %s", out)
	}
}
