package operations_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// daysWork is what an operator types: start, pause, back up, find damage, restore, verify,
// reload, and read the metrics. $u and $m are the addresses of the server and of its metrics.
const daysWork = `set -euo pipefail
status() { # expected status, command…
  local want=$1 got=0
  shift
  "$@" || got=$?
  test "$got" = "$want" || { echo "exit status $got, want $want: $*"; exit 1; }
}
runner serve app --data d &
server=$!
trap 'kill -9 $server 2>/dev/null || true' EXIT
until curl -fs $u/_health/ready; do kill -0 $server; sleep 0.05; done
kill -STOP $server; kill -CONT $server; curl -fs $u/_health/live
runner data import Note notes.jsonl --app app --data d
token=$(runner api-keys create --scope reader --name day --app app --data d | tail -n 1)
head=$(runner backup b.rbk --app app --data d --json | sed -n 's/.*"auditHead": "\(.*\)".*/\1/p')
runner backup --check b.rbk
cp b.rbk good.rbk
printf x | dd of=b.rbk bs=1 seek=5000 conv=notrunc status=none
status 3 runner backup --check b.rbk
status 3 runner restore b.rbk --app app --data e --pepper d/pepper
test ! -e e
runner restore good.rbk --app app --data e --pepper d/pepper
runner audit verify --app app --data e --head $head
status 1 runner audit verify --app app --data e --head 0:$(printf %064d 1)
cmp <(runner data export Note --app app --data d) <(runner data export Note --app app --data e)
sed -i 's/instances = .*/instances = 3/' app/runner.toml
status 3 runner reload --app app --data d
sed -i 's/instances = .*/instances = 2/' app/runner.toml
runner reload --app app --data d
test "$(curl -fs -H "X-API-Key: $token" $u/hello)" = '{"message":"hello"}'
curl -fs $m/metrics > metrics
promtool check metrics < metrics
kill $server
wait $server
trap - EXIT
echo done
`

func TestADaysWorkOfAnOperator(t *testing.T) {
	out, err := exec.Command(harness.RepoFile("tools/fetch-promtool.sh")).Output()
	if err != nil {
		t.Fatalf("get promtool: %v", err)
	}
	free := func() string {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		return listener.Addr().String()
	}
	address, metrics := free(), free()
	a := harness.NewApp(t, backupSchema, fmt.Sprintf("[front]\nlisten = %q\n[metrics]\nlisten = %q\n[sandbox]\ninstances = 2\n", address, metrics), "echo")
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "app"), os.DirFS(a.Dir)); err != nil {
		t.Fatal(err)
	}
	notes := strings.Repeat("{\"text\":\"a note of some length, so that the backup has more than one block\"}\n", 500)
	if err := os.WriteFile(filepath.Join(dir, "notes.jsonl"), []byte(notes), 0o600); err != nil {
		t.Fatal(err)
	}
	programs := filepath.Join(dir, "bin")
	if err := os.Mkdir(programs, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"runner": harness.Binary, "promtool": strings.TrimSpace(string(out))} {
		if err := os.Symlink(path, filepath.Join(programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), harness.BuildTimeout)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", daysWork)
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "u=http://"+address, "m=http://"+metrics)
	text, err := shell.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(text), "done\n") {
		t.Errorf("%v\n%s", err, text)
	}
}
