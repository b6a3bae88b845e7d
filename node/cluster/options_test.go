package cluster_test

import (
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/internal/fault"
	"runner.example/node/cluster"
)

func TestAddressesThatOtherNodesCannotUseAreRefused(t *testing.T) {
	var o cluster.Options
	for _, good := range []string{"10.0.0.1:9400", "[2001:db8::1]:9400", "n1:1", "Paris.example.com:65533", "1.example:9400", "localhost:9400"} {
		if err := o.CheckSetting("cluster.listen", good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"a b:9400", "[fe80::1%eth0]:9400", "u@h:9400", "a/b:9400", "%zz:9400", "?x:9400", "#h:9400", "-x:9400", "x-:9400", "a..b:9400",
		"256.1.1.1:9400", "224.0.0.1:9400", "0:9400", "0.0.0.0:9400", "[::]:9400", "127.0.0.1:09400", "127.0.0.1:0", "127.0.0.1:65534",
		"a\nb:9400", "a.:9400", ":9400", "h", "h:", strings.Repeat("a", 64) + ":9400", strings.Repeat("a.", 127) + "aa:9400",
	} {
		if err := o.CheckSetting("cluster.listen", bad); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAddressesOfNoEtcdServerAreRefused(t *testing.T) {
	var o cluster.Options
	for _, good := range []string{"https://etcd-1.example.com:2379", "http://127.0.0.1:2379"} {
		if err := o.CheckSetting("cluster.endpoints", good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "x", "ftp://x:1", "https://x:1/path", "https://:secret@:1", "https://u:secret@x:1/path", "etcd:2379", "http://x:99999"} {
		err := o.CheckSetting("cluster.endpoints", bad)
		if fault.CodeOf(err) != fault.Invalid || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// What only serve would notice is refused before anything is written.
func TestInitRefusesWhatTheServerCannotUse(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for want, opt := range map[string]cluster.Options{
		"no such host":                    {Listen: "nosuchhost.invalid:9400"},
		"cannot assign requested address": {Listen: "192.0.2.1:9400"},
		"address already in use":          {Listen: busy.Addr().String()},
		`the address "x"`:                 {Endpoints: []string{"x"}},
		"no such file":                    {Endpoints: []string{"https://127.0.0.1:1"}, TLSCA: "/nope"},
	} {
		data := filepath.Join(t.TempDir(), "n1")
		opt.Name = "n1"
		_, err := cluster.Init(t.Context(), data, opt)
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) && want != "no such host" {
			t.Errorf("%s: %v", want, err)
		}
		if _, err := os.Stat(data); !os.IsNotExist(err) {
			t.Errorf("%s: the data directory was made: %v", want, err)
		}
	}
}

// One machine that joined with an address that is not valid does not keep others from starting.
func TestANodeStartsAlthoughAnAddressOfAnotherOneIsNotValid(t *testing.T) {
	first := found(t)
	data := first.joined(cluster.Edge, "edge")
	path := filepath.Join(data, "cluster", "node.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var id map[string]any
	if err := json.Unmarshal(text, &id); err != nil {
		t.Fatal(err)
	}
	id["peers"] = append(id["peers"].([]any), map[string]any{"name": "bad", "role": "voter", "address": "a b:9400"})
	if text, err = json.Marshal(id); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	startLogged(t, data).wait(t, "address of a node not used", "bad")
}

func TestPortsOfNodesMeetByAnyNameOfTheHost(t *testing.T) {
	first := found(t)
	data := filepath.Join(t.TempDir(), "a")
	opt := cluster.JoinOptions{Options: cluster.Options{Name: "a"}, Data: data} // on 127.0.0.1
	if _, err := cluster.Join(t.Context(), first.invite(cluster.Edge), opt); err != nil {
		t.Fatal(err)
	}
	meets := strings.Replace(nextPort(t, first.node("a").Address, 1), "127.0.0.1", "localhost", 1)
	opt = cluster.JoinOptions{Options: cluster.Options{Name: "b", Listen: meets}, Data: data + "b"}
	if _, err := cluster.Join(t.Context(), first.invite(cluster.Edge), opt); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "meet") {
		t.Errorf("join: %v", err)
	}
}

// A voter that cannot listen would be a learner that keeps all later voters from joining.
func TestAVoterWithoutItsPortsDoesNotStart(t *testing.T) {
	first := found(t)
	data := first.joined(cluster.Voter, "n2")
	third := nextPort(t, first.node("n2").Address, 2)
	busy, err := net.Listen("tcp", third)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	_, err = cluster.Start(cluster.StartOptions{Data: data, Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "cannot listen on "+third) {
		t.Errorf("start: %v", err)
	}
}
