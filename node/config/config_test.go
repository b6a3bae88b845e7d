package config_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/diag"
	"runner.example/internal/settings"
	"runner.example/node/config"
)

// read returns the configuration of a file with that text, and the printed problems.
func read(t *testing.T, text string, environ ...string) (*config.Config, string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile(filepath.Join(dir, "runner.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, found, err := config.Load("runner.toml", false, environ)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := diag.Print(&out, nil, found.Excerpt()); err != nil {
		t.Fatal(err)
	}
	return c, out.String()
}

func TestEveryErrorOfTheFileHasItsPlace(t *testing.T) {
	rows := []struct{ name, text, want string }{
		{"key", "[front]\nlistn = \"x\"\n", `runner.toml:2:1: error: unknown key "listn" in [front] (did you mean "listen"?)`},
		{"indented key", "[front]\n\t  listn = 1", `runner.toml:2:4: error: unknown key "listn" in [front] (did you mean "listen"?)`},
		{"key of another section", "[front]\nmemory = \"1mb\"\n", `runner.toml:2:1: error: unknown key "memory" in [front] (it belongs to [sandbox])`},
		{"key without a section", "timeout = \"1s\"\n", `runner.toml:1:1: error: key "timeout" is in no section (it belongs to [runtime])`},
		{"section", "\n[frnt]\nlisten = \"x\"\n", `runner.toml:2:2: error: unknown section [frnt] (did you mean "front"?)`},
		{"dotted section", "frnt.listen = \"x\"\n", `runner.toml:1:1: error: unknown section [frnt] (did you mean "front"?)`},
		{"dotted key", "front.listn = \"x\"\n", `runner.toml:1:7: error: unknown key "listn" in [front] (did you mean "listen"?)`},
		{"tables", "[[front]]\nlisten = \"x\"\n", `runner.toml:1:3: error: key "front" is in no section`},
		{"string for a number", "[front]\nheader_lines = \"100\"\n", `runner.toml:2:16: error: [front] header_lines: expected a whole number, found a string`},
		{"number for a duration", "[runtime]\ntimeout = 10\n", `runner.toml:2:11: error: [runtime] timeout: expected a duration in quotes, such as "10s", found the number 10`},
		{"number for a size", "[sandbox]\nmemory = 10\n", `runner.toml:2:10: error: [sandbox] memory: expected a size in quotes, such as "64mb", found the number 10`},
		{"duration", "[runtime]\ntimeout = \"10 s\"\n", `runner.toml:2:11: error: [runtime] timeout: "10 s" is not a duration: write one whole number and one unit of ms, s, m, h, d or w (did you mean 10s?)`},
		{"duration of two units", "[runtime]\ntimeout = \"1m30s\"\n", `runner.toml:2:11: error: [runtime] timeout: "1m30s" is not a duration: write one whole number and one unit of ms, s, m, h, d or w (did you mean 90s?)`},
		{"duration without a unit", "[runtime]\ntimeout = \"60\"\n", `runner.toml:2:11: error: [runtime] timeout: "60" is not a duration: write one whole number and one unit of ms, s, m, h, d or w (did you mean 60s?)`},
		{"word for a duration", "[runtime]\ntimeout = \"soon\"\n", `runner.toml:2:11: error: [runtime] timeout: "soon" is not a duration: write one whole number and one unit of ms, s, m, h, d or w, such as 30s or 90d`},
		{"duration too long", "[sandbox]\nqueue_wait = \"2m\"\n", `runner.toml:2:14: error: [sandbox] queue_wait: 2m is too long: it must be at most 1m`},
		{"duration beyond counting", "[runtime]\ntimeout = \"99999999999999w\"\n", `runner.toml:2:11: error: [runtime] timeout: 99999999999999w is longer than can be counted`},
		{"size", "[front]\nbody = \"1Mb\"\n", `runner.toml:2:8: error: [front] body: "1Mb" is not a size: write one whole number and one unit of b, kb, mb or gb, such as 64kb`},
		{"size too small", "[front]\nheader_bytes = \"1b\"\n", `runner.toml:2:16: error: [front] header_bytes: 1b is too small: it must be at least 1kb`},
		{"memory that no sandbox can have", "[sandbox]\nmemory = \"4096mb\"\n", `runner.toml:2:10: error: [sandbox] memory must be from 64kb to less than 4096mb, in whole 64kb`},
		{"less for all sandboxes than for one", "[sandbox]\nmemory = \"64mb\"\ntotal_memory = \"1mb\"\n", `runner.toml:3:16: error: [sandbox] total_memory must be at least [sandbox] memory`},
		{"size of no whole pages", "[sandbox]\nmemory = \"100kb\"\n", `runner.toml:2:10: error: [sandbox] memory: 100kb is not a multiple of 64kb`},
		{"count", "[front]\nheader_lines = 0\n", `runner.toml:2:16: error: [front] header_lines: 0 is outside 1..10000`},
		{"negative count", "[front]\nmax_connections = -1\n", `runner.toml:2:19: error: [front] max_connections: -1 is outside 1..2147483647`},
		{"bool", "[telemetry]\naccess_log = \"yes\"\n", `runner.toml:2:14: error: [telemetry] access_log: expected true or false, found a string`},
		{"word", "[telemetry]\nlevel = \"loud\"\n", `runner.toml:2:9: error: [telemetry] level: expected debug, info, warn or error, found "loud"`},
		{"list", "[front]\nhosts = \"a\"\n", `runner.toml:2:9: error: [front] hosts: expected a list of strings, such as ["a", "b"], found a string`},
		{"item", "[front]\nhosts = [1]\n", `runner.toml:2:9: error: [front] hosts: expected a list of strings, found the number 1`},
		{"items", "[front]\nhosts = [\"a/b\", 1, \"ok\", \"c/d\"]\n",
			"runner.toml:2:9: error: [front] hosts: \"a/b\" is not a host name: write it as in the Host header, such as api.example.com, or *.example.com for all names with one more label\n" +
				"runner.toml:2:9: error: [front] hosts: \"c/d\" is not a host name: write it as in the Host header, such as api.example.com, or *.example.com for all names with one more label\n" +
				"runner.toml:2:9: error: [front] hosts: expected a list of strings, found the number 1"},
		{"pattern of all hosts", "[front]\nhosts = [\"*.example.com\", \"*\"]\n",
			`runner.toml:2:9: error: [front] hosts: "*" is not a host name: write it as in the Host header, such as api.example.com, or *.example.com for all names with one more label`},
		{"pattern inside a host", "[front]\nhosts = [\"a.*.example.com\"]\n",
			`runner.toml:2:9: error: [front] hosts: "a.*.example.com" is not a host name: write it as in the Host header, such as api.example.com, or *.example.com for all names with one more label`},
		{"empty folder", "[store]\ndir = \"\"\n", `runner.toml:2:7: error: [store] dir: it must not be empty`},
		{"network", "[front]\ntrusted_proxies = [\"10.0.0.0/33\"]\n", `runner.toml:2:19: error: [front] trusted_proxies: "10.0.0.0/33" is not a network: write it as 10.0.0.0/8, or a single address`},
		{"address", "[front]\nlisten = \"8080\"\n", `runner.toml:2:10: error: [front] listen: "8080" is not an address to listen on: write host:port, such as 127.0.0.1:8080, with a port of at most 65535`},
		{"port", "[metrics]\nlisten = \"127.0.0.1:99999\"\n", `runner.toml:2:10: error: [metrics] listen: "127.0.0.1:99999" is not an address to listen on: write host:port, such as 127.0.0.1:9090, with a port of at most 65535`},
		{"admin port", "[admin]\nlisten = \"127.0.0.1:99999\"\n", `runner.toml:2:10: error: [admin] listen: "127.0.0.1:99999" is not an address to listen on: write host:port, such as 127.0.0.1:8080, with a port of at most 65535`},
		{"proxy without a scheme", "[dev]\nproxy = \"localhost:5173\"\n", `runner.toml:2:9: error: [dev] proxy: "localhost:5173" is not the address of a server: write http://localhost:5173, without a path`},
		{"proxy with a path", "[dev]\nproxy = \"http://localhost:5173/app\"\n", `runner.toml:2:9: error: [dev] proxy: "http://localhost:5173/app" is not the address of a server: write http://localhost:5173, without a path`},
		{"proxy with a password", "[dev]\nproxy = \"http://a:b@localhost:5173\"\n", `runner.toml:2:9: error: [dev] proxy: "http://a:b@localhost:5173" is not the address of a server: write http://localhost:5173, without a path`},
		{"proxy on another machine", "[dev]\nproxy = \"http://10.0.0.1:5173\"\n", `runner.toml:2:9: error: [dev] proxy: "http://10.0.0.1:5173" is not on this machine: the host must be localhost, 127.0.0.1 or [::1]`},
		{"table for a key", "[front.listen]\nx = 1\n", `runner.toml:1:1: error: [front] listen: expected a string in quotes, found a table`},
		{"together", "[front]\nbody = \"65mb\"\n", `runner.toml:2:8: error: [front] body is 65mb, above the 64mb of [front] max_body: lower the one or raise the other`},
		{"together, the memory", "[front]\nbody_memory = \"1mb\"\nbody = \"2mb\"\n", `runner.toml:3:8: error: [front] body is 2mb, above the 1mb of [front] body_memory: lower the one or raise the other`},
		{"together, the answers", "[front]\nanswer_memory = \"1mb\"\n", `runner.toml:2:17: error: [sandbox] response is 8mb, above the 1mb of [front] answer_memory: lower the one or raise the other`},
		{"together, the answers to one address", "[front]\nanswer_memory_per_ip = \"1mb\"\n", `runner.toml:2:24: error: [sandbox] response is 8mb, above the 1mb of [front] answer_memory_per_ip: lower the one or raise the other`},
		{"together, a larger answer to one address", "[front]\nanswer_memory_per_ip = \"9mb\"\n[sandbox]\nresponse = \"10mb\"\n", `runner.toml:4:12: error: [sandbox] response is 10mb, above the 9mb of [front] answer_memory_per_ip: lower the one or raise the other`},
		{"together, the bound", "[runtime]\nmax_timeout = \"5s\"\n", `runner.toml:2:15: error: [runtime] timeout is 10s, above the 5s of [runtime] max_timeout: lower the one or raise the other`},
		{"together, a hash", "[password]\nmemory = \"256mb\"\n", `runner.toml:2:10: error: [password] memory is 256mb, above the 128mb of [password] max_memory: lower the one or raise the other`},
		{"together, the time of a hash", "[password]\nmemory = \"100mb\"\npasses = 60\n", `runner.toml:3:10: error: [password] memory and passes: a hash would take about 6 seconds of a processor, and could not be verified; the limit is 4: lower one of them`},
		{"private key", "[release]\ntrusted_keys = [\"" + trustedKey + "\", \"" + privateKey + "\"]\n",
			`runner.toml:2:16: error: [release] trusted_keys: an entry is a private key: remove it, and write its public key, the line between BEGIN and END that openssl pkey -pubout prints`},
		{"not a key", "[release]\ntrusted_keys = [\"release.pub\"]\n",
			`runner.toml:2:16: error: [release] trusted_keys: an entry is not an Ed25519 public key: write the line between BEGIN and END that openssl pkey -pubout prints`},
		{"not TOML", "[front]\nlisten = \"äö\" x\n", `runner.toml:2:14: error: not TOML here: write strings in quotes`},
		{"given twice", "[front]\nlisten = \"a:1\"\nlisten = \"a:1\"\n", `runner.toml:3:1: error: not TOML here: the key was defined before: keep it once`},
		{"open string", "[front]\nlisten = \"a:1", `runner.toml:2:13: error: not TOML here: unexpected EOF; expected '"'`},
		{"escape", "[front]\nlisten = \"a\\q\"\n", `runner.toml:2:11: error: not TOML here: write a backslash in a string as \\`},
		{"half an escape", "[front]\nlisten = \"a\\u12\"\n", `runner.toml:2:11: error: not TOML here: write a backslash in a string as \\`},
		{"not UTF-8", "[front]\nlisten = \"\xff\"\n", `runner.toml:2:10: error: not TOML here: the file is not UTF-8`},
		{"string over lines", "[front]\nlisten = \"a:1\n\"\n", `runner.toml:2:14: error: not TOML here: strings cannot contain newlines`},
		{"empty secret", "[secrets]\nKEY = \"\"\n", `runner.toml:2:1: error: secret "KEY" must be a string in quotes, and not an empty one`},
		{"decimal without quotes", "[vars]\nPRICE = 1.5\n", `runner.toml:2:1: error: variable "PRICE" must be a string in quotes, a whole number, true or false; write a decimal in quotes too`},
		{"all at once",
			"[front]\nlistn = 1\n[sandbox]\nmemory = 1\n[nix]\n",
			"runner.toml:2:1: error: unknown key \"listn\" in [front] (did you mean \"listen\"?)\n" +
				"runner.toml:4:10: error: [sandbox] memory: expected a size in quotes, such as \"64mb\", found the number 1\n" +
				"runner.toml:5:2: error: unknown section [nix]"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if _, got := read(t, row.text); got != row.want+"\n" {
				t.Errorf("file:\n%s\ngot:\n%swant:\n%s", row.text, got, row.want)
			}
		})
	}
}

func TestTheEnvironmentOverridesTheFile(t *testing.T) {
	c, found := read(t, "[front]\nlisten = \"a:1\"\nhosts = [\"x\"]\n[secrets]\nA = \"b\"\n[vars]\nON = true\nSIZE = 20\nURL = \"https://a\"\n",
		"RUNNER_FRONT_LISTEN=b:2", "RUNNER_FRONT_TRUSTED_PROXIES=10.0.0.0/8, 192.168.1.1",
		"RUNNER_SANDBOX_MEMORY=1mb", "RUNNER_RUNTIME_TIMEOUT=250ms", "RUNNER_TELEMETRY_ACCESS_LOG=true",
		"RUNNER_FRONT_MAX_CONNECTIONS=7", "RUNNER_VARS_URL=https://b", "RUNNER_VARS_EMPTY=", "OTHER=1")
	if found != "" {
		t.Fatal(found)
	}
	want := config.Default()
	want.Runtime.Front.Listen = "b:2"
	want.Runtime.Front.Hosts = []string{"x"}
	want.Runtime.Front.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.168.1.1/32")}
	want.Runtime.Front.MaxConns = 7
	want.Runtime.Sandbox.MemoryBytes = 1 << 20
	want.Runtime.Timeout = 250 * time.Millisecond
	want.Runtime.AccessLog = true
	want.Secrets = map[string]string{"A": "b"}
	at := diag.Pos{Offset: 47, Line: 5, Col: 1}
	want.SecretPlaces = map[string]diag.Span{"A": {File: "runner.toml", Start: at, End: at}}
	toml := func(offset, line int) diag.Span {
		at := diag.Pos{Offset: offset, Line: line, Col: 1}
		return diag.Span{File: "runner.toml", Start: at, End: at}
	}
	want.Vars = map[string]settings.Given{
		"ON": {Text: "true", Place: toml(62, 7)}, "SIZE": {Text: "20", Place: toml(72, 8)},
		"URL": {Text: "https://b", Place: diag.Span{File: "RUNNER_VARS_URL"}}, "EMPTY": {Place: diag.Span{File: "RUNNER_VARS_EMPTY"}},
	}
	if !want.Equal(c) || !reflect.DeepEqual(want.SecretPlaces, c.SecretPlaces) || !reflect.DeepEqual(want.Vars, c.Vars) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	inForce := map[string]string{}
	for _, s := range c.InForce() {
		inForce[s.Name] = fmt.Sprintf("%s %s %s", s.Value, s.From, s.Place)
	}
	for name, want := range map[string]string{
		"front.listen": `"b:2" environment RUNNER_FRONT_LISTEN`, "front.hosts": `["x"] file runner.toml:3:9`,
		"front.trusted_proxies": `["10.0.0.0/8","192.168.1.1/32"] environment RUNNER_FRONT_TRUSTED_PROXIES`,
		"front.max_connections": `7 environment RUNNER_FRONT_MAX_CONNECTIONS`, "front.read_timeout": `"10s" default `,
		"sandbox.memory": `"1mb" environment RUNNER_SANDBOX_MEMORY`, "sandbox.breaker": `true default `,
		"secrets.A": `null file runner.toml:5:1`, "vars.ON": `"true" file runner.toml:7:1`,
		"vars.URL": `"https://b" environment RUNNER_VARS_URL`,
	} {
		if inForce[name] != want {
			t.Errorf("%s is %s, want %s", name, inForce[name], want)
		}
	}
}

func TestAnErrorInTheEnvironmentNamesTheVariable(t *testing.T) {
	rows := []struct{ entry, want string }{
		{"RUNNER_RUNTIME_TIMEOUT=10", `RUNNER_RUNTIME_TIMEOUT: error: [runtime] timeout: "10" is not a duration: write one whole number and one unit of ms, s, m, h, d or w (did you mean 10s?)`},
		{"RUNNER_FRONT_HEADER_LINES=many", `RUNNER_FRONT_HEADER_LINES: error: [front] header_lines: "many" is not a whole number`},
		{"RUNNER_TELEMETRY_ACCESS_LOG=1", `RUNNER_TELEMETRY_ACCESS_LOG: error: [telemetry] access_log: expected true or false, found "1"`},
		{"RUNNER_STORE_DIR=", `RUNNER_STORE_DIR: error: [store] dir: it must not be empty`},
		{"RUNNER_FRONT_LISTN=a:1", `RUNNER_FRONT_LISTN: warning: no setting has this variable (did you mean "RUNNER_FRONT_LISTEN"?)`},
		{"RUNNER_FRONT_BODY=100mb", `RUNNER_FRONT_BODY: error: [front] body is 100mb, above the 64mb of [front] max_body: lower the one or raise the other`},
		{"RUNNER_PORT_8080_TCP_ADDR=10.0.0.1", ""},
		{"RUNNER_SECRETS_X=y", ""},
	}
	for _, row := range rows {
		if _, got := read(t, "", row.entry); strings.TrimSuffix(got, "\n") != row.want {
			t.Errorf("%s:\ngot:  %swant: %s", row.entry, got, row.want)
		}
	}
}

// Options that a package fills when a part is made have the values of a server without a file, except those
// whose zero means something else.
func TestOptionsThatAreZeroHaveTheDefaultsOfTheFile(t *testing.T) {
	meaning := map[string]string{
		"[jobs] max_waiting":         "any number of jobs waits",
		"[jobs] max_waiting_per_job": "any number of them has one name",
		"[jobs] keep_done":           "a job is deleted when it is done",
		"[jobs] keep_failed":         "a job is deleted when it has failed",
		"[runtime] shutdown_timeout": "a shutdown does not wait",
	}
	var zero config.Config
	all := []any{&zero.Runtime, &zero.Schema, &zero.Store, &zero.Keystore, &zero.Audit, &zero.Telemetry, &zero.Release, &zero.Admin, &zero.Cluster, &zero.Development}
	settings.FillZero(all...)
	reload, restart := config.Default().Changes(&zero)
	for _, name := range append(reload, restart...) {
		if meaning[name] == "" {
			t.Errorf("%s of an option struct that is zero is not the default of the file", name)
		}
		delete(meaning, name)
	}
	for name := range meaning {
		t.Errorf("%s of an option struct that is zero has the default of the file", name)
	}
}

// changed has a value for each setting that is not its default.
var changed = map[string]string{
	"RUNNER_RECORD_FAILURES":              "9",
	"RUNNER_RECORD_SAMPLE":                "0.5",
	"RUNNER_RECORD_KEEP":                  "9d",
	"RUNNER_RECORD_SIZE":                  "9mb",
	"RUNNER_FRONT_LISTEN":                 "127.0.0.1:1",
	"RUNNER_FRONT_HOSTS":                  "a.example",
	"RUNNER_FRONT_TRUSTED_PROXIES":        "10.0.0.0/8",
	"RUNNER_FRONT_TLS_CERT":               "cert.pem",
	"RUNNER_FRONT_TLS_KEY":                "key.pem",
	"RUNNER_FRONT_HEADER_BYTES":           "17kb",
	"RUNNER_FRONT_HEADER_LINES":           "101",
	"RUNNER_FRONT_TARGET_BYTES":           "9kb",
	"RUNNER_FRONT_BODY":                   "2mb",
	"RUNNER_FRONT_MAX_BODY":               "65mb",
	"RUNNER_FRONT_BODY_MEMORY":            "9mb",
	"RUNNER_FRONT_ANSWER_MEMORY":          "9mb",
	"RUNNER_FRONT_ANSWER_MEMORY_PER_IP":   "9mb",
	"RUNNER_FRONT_READ_TIMEOUT":           "11s",
	"RUNNER_FRONT_WRITE_TIMEOUT":          "31s",
	"RUNNER_FRONT_IDLE_TIMEOUT":           "61s",
	"RUNNER_FRONT_MAX_CONNECTIONS":        "9",
	"RUNNER_FRONT_MAX_CONNECTIONS_PER_IP": "9",
	"RUNNER_RUNTIME_TIMEOUT":              "11s",
	"RUNNER_RUNTIME_MAX_TIMEOUT":          "61s",
	"RUNNER_RUNTIME_MAX_STREAM":           "61m",
	"RUNNER_RUNTIME_STREAMS":              "11",
	"RUNNER_RUNTIME_DRAIN":                "9s",
	"RUNNER_LIVE_INTERVAL":                "9s",
	"RUNNER_LIVE_RANGES":                  "9",
	"RUNNER_LIVE_VALUE_MEMORY":            "9mb",
	"RUNNER_JOBS_SLOTS":                   "9",
	"RUNNER_JOBS_MAX_WAITING":             "9",
	"RUNNER_JOBS_MAX_WAITING_PER_JOB":     "9",
	"RUNNER_JOBS_KEEP_DONE":               "9d",
	"RUNNER_JOBS_KEEP_FAILED":             "9d",
	"RUNNER_RUNTIME_SHUTDOWN_TIMEOUT":     "11s",
	"RUNNER_SANDBOX_MEMORY":               "1mb",
	"RUNNER_SANDBOX_TOTAL_MEMORY":         "999mb",
	"RUNNER_SANDBOX_CPU":                  "2s",
	"RUNNER_SANDBOX_BREAKER":              "false",
	"RUNNER_SANDBOX_INSTANCES":            "9",
	"RUNNER_SANDBOX_QUEUE_WAIT":           "2s",
	"RUNNER_SANDBOX_HOST_CALLS":           "9",
	"RUNNER_SANDBOX_MOVED_BYTES":          "9mb",
	"RUNNER_SANDBOX_STORE_OPERATIONS":     "9",
	"RUNNER_SANDBOX_ROWS":                 "9",
	"RUNNER_SANDBOX_RESPONSE":             "9mb",
	"RUNNER_SANDBOX_LOG_LINES":            "9",
	"RUNNER_SANDBOX_LOG_BYTES":            "9kb",
	"RUNNER_SANDBOX_COMPILE_TIMEOUT":      "9s",
	"RUNNER_SANDBOX_GUARD":                "off",
	"RUNNER_SANDBOX_MEMORY_BACKEND":       "portable",
	"RUNNER_SANDBOX_COMPILE_MEMORY":       "99mb",
	"RUNNER_PASSWORD_MEMORY":              "9mb",
	"RUNNER_PASSWORD_PASSES":              "9",
	"RUNNER_PASSWORD_MAX_MEMORY":          "99mb",
	"RUNNER_PASSWORD_PARALLEL":            "9",
	"RUNNER_PASSWORD_QUEUE_WAIT":          "9s",
	"RUNNER_STORE_DIR":                    "elsewhere",
	"RUNNER_FILES_MAX_TOTAL":              "10gb",
	"RUNNER_KEYSTORE_PEPPER_FILE":         "elsewhere",
	"RUNNER_KEYSTORE_KEEP_DEAD":           "9d",
	"RUNNER_AUTH_INSECURE_COOKIES":        "true",
	"RUNNER_AUDIT_KEEP_REFUSED":           "9d",
	"RUNNER_LIMIT_COUNTERS":               "9",
	"RUNNER_LIMIT_ACROSS":                 "divided",
	"RUNNER_OUTBOUND_ALLOW_PRIVATE":       "true",
	"RUNNER_OUTBOUND_FETCHES":             "9",
	"RUNNER_OUTBOUND_ANSWER":              "9mb",
	"RUNNER_OUTBOUND_PUBLIC_RATE":         "60",
	"RUNNER_TELEMETRY_LEVEL":              "debug",
	"RUNNER_TELEMETRY_FORMAT":             "text",
	"RUNNER_TELEMETRY_ACCESS_LOG":         "true",
	"RUNNER_METRICS_LISTEN":               "127.0.0.1:1",
	"RUNNER_TELEMETRY_QUEUE":              "9mb",
	"RUNNER_RELEASE_KEEP":                 "3",
	"RUNNER_RELEASE_TRUSTED_KEYS":         trustedKey,
	"RUNNER_ADMIN_LISTEN":                 "127.0.0.1:1",
	"RUNNER_ADMIN_TLS_CERT":               "cert.pem",
	"RUNNER_ADMIN_TLS_KEY":                "key.pem",
	"RUNNER_ADMIN_SOCKET":                 "/run/runner/admin.sock",
	"RUNNER_ADMIN_UPLOAD_PER_HOUR":        "9gb",
	"RUNNER_CLUSTER_NAME":                 "rome",
	"RUNNER_CLUSTER_LISTEN":               "10.0.0.1:9400",
	"RUNNER_CLUSTER_ELECTION":             "2s",
	"RUNNER_CLUSTER_ENDPOINTS":            "https://etcd.example:2379",
	"RUNNER_CLUSTER_TLS_CA":               "ca.pem",
	"RUNNER_CLUSTER_TLS_CERT":             "cert.pem",
	"RUNNER_CLUSTER_TLS_KEY":              "key.pem",
	"RUNNER_CLUSTER_MAX_STALENESS":        "31s",
	"RUNNER_CLUSTER_STALE_KEYS":           "serve",
	"RUNNER_BUILD_COMMAND":                "make",
	"RUNNER_DEV_PROXY":                    "http://localhost:5173",
}

// A reload takes these settings; all others need a restart.
var reloadable = []string{
	"RUNNER_FRONT_HOSTS", "RUNNER_FRONT_TRUSTED_PROXIES", "RUNNER_FRONT_TLS_CERT", "RUNNER_FRONT_TLS_KEY", "RUNNER_ADMIN_TLS_CERT", "RUNNER_ADMIN_TLS_KEY",
	"RUNNER_TELEMETRY_ACCESS_LOG", "RUNNER_TELEMETRY_FORMAT", "RUNNER_TELEMETRY_LEVEL", "RUNNER_TELEMETRY_QUEUE", "RUNNER_RELEASE_TRUSTED_KEYS",
}

// trustedKey is an Ed25519 public key, and privateKey one that must not be shown.
const (
	trustedKey = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="
	privateKey = "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC"
)

func TestAChangedSettingIsNamed(t *testing.T) {
	usual := load(t, "")
	for _, variable := range variables(t) {
		next, _ := read(t, "", variable+"="+changed[variable])
		section, key, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(variable, "RUNNER_")), "_")
		name := "[" + section + "] " + key
		reload, restart := usual.Changes(next)
		want, other := restart, reload
		if slices.Contains(reloadable, variable) {
			want, other = reload, restart
		}
		if !slices.Equal(want, []string{name}) || len(other) > 0 {
			t.Errorf("%s: reload %q, restart %q", variable, reload, restart)
		}
	}
}

func TestEverySettingChangesAnOption(t *testing.T) {
	usual := fmt.Sprintf("%+v", load(t, ""))
	for _, variable := range variables(t) {
		value, ok := changed[variable]
		if !ok {
			t.Errorf("this test has no other value for %s", variable)
			continue
		}
		c, problems := read(t, "", variable+"="+value)
		if got := fmt.Sprintf("%+v", c); got == usual || strings.Contains(problems, "no setting has") {
			t.Errorf("%s changes nothing: %s", variable, problems)
		}
	}
}

// variables returns the variables of all settings in the generated file.
func variables(t *testing.T) (all []string) {
	t.Helper()
	section := ""
	for line := range strings.Lines(string(config.Template(func(reflect.Type, string) string { return "" }))) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "["); ok {
			section = strings.TrimSuffix(name, "]")
		} else if key, _, ok := strings.Cut(line, " = "); ok && !strings.HasPrefix(line, "#") {
			all = append(all, "RUNNER_"+strings.ToUpper(section+"_"+key))
		}
	}
	if len(all) != len(changed) {
		t.Errorf("%d settings, %d in this test", len(all), len(changed))
	}
	return all
}

func load(t *testing.T, text string) *config.Config {
	t.Helper()
	c, _ := read(t, text)
	return c
}

func TestValuesOfSecretsAreNotInErrors(t *testing.T) {
	const canary = "c4n4ry"
	for _, text := range []string{
		"[secrets]\nA = [\"" + canary + "\"]\n",
		"[secret]\nA = \"" + canary + "\"\n",
		"[front]\nsecret = \"" + canary + "\"\n",
		"[secrets]\nA = \"" + canary + "\" x\n",
		"A = \"" + canary + "\"\n",
		"[secrets]\nA = " + canary + "\n",
		"[secrets]\nA = 1" + canary + "\n",
		"[secrets]\nA = 1_" + canary + "\n",
		"[secrets]\nA = 2024-01-01" + canary + "\n",
		"[secrets]\nA = true" + canary + "\n",
		"[secrets]\nA = [" + canary + "]\n",
		"[secrets]\nA = {b = " + canary + "}\n",
		"[secrets]\nA = \"\\" + canary + "\"\n",
		"[secrets]\nA = \"\\u" + canary + "\"\n",
		"[secrets]\nA: " + canary + "\n",
		"[secrets]\nA = '" + canary + "\n",
		"[secrets]\nA = \"" + canary,
		"[secrets]\n" + canary + " = 1\n" + canary + " = 2\n",
		"[secrets]\n" + canary + "\n",
	} {
		if _, got := read(t, text); got == "" || strings.Contains(got, canary) {
			t.Errorf("file:\n%s\ngot:\n%s", text, got)
		}
	}
}

// Equal compares values: of settings, secrets and variables, and not where they are written.
func TestConfigurationsAreEqualIfTheirValuesAre(t *testing.T) {
	const text = "[front]\nbody = \"2mb\"\n[secrets]\nA = \"x\"\n[vars]\nN = 1\n"
	c := load(t, text)
	for _, row := range []struct {
		text  string
		equal bool
	}{
		{text, true}, {"\n\n[vars]\n\nN = 1\n[secrets]\nA = \"x\"\n[front]\nbody = \"2048kb\"\n", true},
		{strings.Replace(text, "2mb", "3mb", 1), false}, {strings.Replace(text, `"x"`, `"y"`, 1), false}, {strings.Replace(text, "N = 1", "N = 2", 1), false},
		{strings.Replace(text, "N = 1", "M = 1", 1), false}, {strings.Replace(text, "N = 1", "", 1), false}, {strings.Replace(text, "N = 1", "N = 1\nM = 1", 1), false},
		{strings.Replace(text, "A =", "B =", 1), false}, {strings.Replace(text, "A = \"x\"", "", 1), false},
		{text + "[telemetry]\naccess_log = true\n", false}, {"", false},
	} {
		other := load(t, row.text)
		if c.Equal(other) != row.equal || other.Equal(c) != row.equal {
			t.Errorf("equal is %v and %v, want %v, of\n%s\nand\n%s", c.Equal(other), other.Equal(c), row.equal, text, row.text)
		}
	}
}

func TestLimitsOfMemoryAreFitted(t *testing.T) {
	const mib = 1 << 20
	for _, row := range []struct {
		name, toml string
		limit      int64
		handlers   int64
		bodies     int64
		answers    int64
		want       string // a part of the error
	}{
		{"a large machine", "[sandbox]\ninstances = 16\n", 8192 * mib, 1024 * mib, 256 * mib, 256 * mib, ""},
		{"a small machine", "", 672 * mib, 256 * mib, 64 * mib, 64 * mib, ""},
		{"what is set stays", "[sandbox]\ntotal_memory = \"300mb\"\n", 672 * mib, 300 * mib, 64 * mib, 64 * mib, ""},
		{"the default body fits", "[front]\nbody = \"60mb\"\n", 608 * mib, 224 * mib, 60 * mib, 56 * mib, ""},
		{"too much is set", "[sandbox]\ntotal_memory = \"2gb\"\n[front]\nbody_memory = \"100mb\"\n", 672 * mib, 0, 0, 0,
			"add up to 2372mb, and this process can have 672mb: [sandbox] total_memory 2048mb, [front] body_memory 100mb, [front] answer_memory 64mb, and 160mb for the server"},
		{"too small", "", 100 * mib, 0, 0, 0, "this process can have 100mb"},
	} {
		c := load(t, row.toml)
		heap, err := c.FitMemory(row.limit)
		if row.want != "" {
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: %v, want %q", row.name, err, row.want)
			}
			continue
		}
		handlers := c.Runtime.Sandbox.TotalMemory()
		if err != nil || handlers != row.handlers || c.Runtime.Front.MaxBodyMemory != row.bodies || c.Runtime.Front.MaxAnswerMemory != row.answers {
			t.Errorf("%s: %d, %d, %d MiB, %v", row.name, handlers/mib, c.Runtime.Front.MaxBodyMemory/mib, c.Runtime.Front.MaxAnswerMemory/mib, err)
		}
		if heap != row.limit-row.handlers-row.answers {
			t.Errorf("%s: %d MiB for the heap", row.name, heap/mib)
		}
	}
}

func TestAFileWithoutEndIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Symlink("/dev/zero", "runner.toml"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := config.Load("runner.toml", false, nil); err == nil || !strings.Contains(err.Error(), "runner.toml has more than 1024 KiB") {
		t.Errorf("a file without end: %v", err)
	}
}

// Each setting of an option is in the file that lists them all.
func TestTheTemplateHasEverySection(t *testing.T) {
	template := string(config.Template(func(reflect.Type, string) string { return "a comment" }))
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(s reflect.Type) {
		if s.Kind() == reflect.Pointer {
			s = s.Elem()
		}
		if s.Kind() != reflect.Struct || seen[s] {
			return
		}
		seen[s] = true
		for i := range s.NumField() {
			f := s.Field(i)
			section, _, found := strings.Cut(f.Tag.Get("toml"), ".")
			if found && !strings.Contains(template, "\n["+section+"]\n") {
				t.Errorf("%s.%s is a setting of [%s], which is not in the template", s, f.Name, section)
			}
			if f.IsExported() {
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[config.Config]())
}
