package config

import (
	"maps"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/settings"
	"runner.example/internal/telemetry"
	"runner.example/keystore"
	"runner.example/node/admin/server"
	"runner.example/node/cluster"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/runtime/sandbox"
	"runner.example/schema/compiler"
	"runner.example/state/audit"
	"runner.example/state/store"
)

// FileName is the name of the file in an app directory.
const FileName = "runner.toml"

// Config is the configuration of a server. Only settings are set; the caller adds what the
// options need beside them.
type Config struct {
	Runtime   runtime.Options
	Store     store.Options
	Keystore  keystore.Options
	Audit     audit.RunOptions
	Telemetry telemetry.Options
	Schema    compiler.Options
	Release   release.Options
	Admin     server.Options
	Cluster   cluster.Options
	// Development has the settings of `runner build`, `runner dev` and `runner deploy`.
	Development Development

	// Secrets are the values of [secrets], and SecretPlaces the places of their names; nil
	// without the section. Never print the values.
	Secrets      map[string]string
	SecretPlaces map[string]diag.Span

	// Vars are the values of [vars] and RUNNER_VARS_<NAME>, by name.
	Vars map[string]settings.Given

	// values knows where each setting comes from.
	values *settings.Values
}

// options returns all option structs with settings.
func (c *Config) options() []any {
	return []any{&c.Runtime, &c.Schema, &c.Store, &c.Keystore, &c.Audit, &c.Telemetry, &c.Release, &c.Admin, &c.Cluster, &c.Development}
}

// Default returns the configuration without a file and without environment.
func Default() *Config {
	c := &Config{values: settings.None()}
	settings.SetDefaults(c.options()...)
	c.Runtime.WholeBodyBytes = c.Schema.MaxBody
	return c
}

// Load reads the file at path and the environment, in the form of os.Environ. A missing file
// is an error unless optional. The list has all errors, and warnings about variables that
// look misspelt; with an error in it the configuration must not be used. An error means that
// the file cannot be read at all.
func Load(path string, optional bool, environ []string) (*Config, diag.List, error) {
	c := &Config{}
	values, err := settings.Read(path, optional, environ, c.options()...)
	if err != nil {
		return nil, nil, err
	}
	c.Secrets, c.SecretPlaces, c.Vars = values.Secrets, values.SecretPlaces, values.Vars
	c.values = values
	c.check(values)
	c.Runtime.WholeBodyBytes = c.Schema.MaxBody
	return c, values.Problems, nil
}

// Place returns where a setting was set, as in Place("front", "tls_cert"), and whether it was.
func (c *Config) Place(section, key string) (diag.Span, bool) { return c.values.Place(section, key) }

// SetByFlag records that a flag of the command line has set a setting.
func (c *Config) SetByFlag(section, key, flag string) {
	c.values.SetBy(settings.Flag, section, key, flag)
}

// InForce returns all settings with their values and where each comes from, the names of the secrets and
// the variables.
func (c *Config) InForce() []settings.Setting { return c.values.InForce(sections, c.options()...) }

// Changes returns the names of the settings that differ in the next configuration: those that
// a reload applies, and those that need a restart.
func (c *Config) Changes(next *Config) (reload, restart []string) {
	return settings.Changed(c.options(), next.options())
}

// Equal reports whether two configurations have the same settings, secrets and variables.
func (c *Config) Equal(other *Config) bool {
	x, y := *c, *other
	x.SecretPlaces, y.SecretPlaces = nil, nil
	x.Vars, y.Vars = nil, nil
	x.values, y.values = nil, nil
	return reflect.DeepEqual(x, y) &&
		maps.EqualFunc(c.Vars, other.Vars, func(v, w settings.Given) bool { return v.Text == w.Text })
}

// check reports settings that contradict each other.
func (c *Config) check(values *settings.Values) {
	front, limits := &c.Runtime.Front, &c.Runtime.Limits
	duration := func(n int64) string { return settings.FormatDuration(time.Duration(n)) }
	notAbove := func(section, key, limitSection, limitKey string, value, limit int64, format func(int64) string) {
		if value <= limit {
			return
		}
		place, ok := values.Place(section, key)
		if !ok {
			place, _ = values.Place(limitSection, limitKey)
		}
		values.Problems.Errorf("", place, "[%s] %s is %s, above the %s of [%s] %s: lower the one or raise the other",
			section, key, format(value), format(limit), limitSection, limitKey)
	}
	notAbove("front", "body", "front", "max_body", c.Runtime.BodyBytes, c.Schema.MaxBody, settings.FormatSize)
	notAbove("front", "body", "front", "body_memory", c.Runtime.BodyBytes, front.MaxBodyMemory, settings.FormatSize)
	notAbove("sandbox", "response", "front", "answer_memory", int64(limits.ResponseBytes), front.MaxAnswerMemory,
		settings.FormatSize)
	if front.MaxAnswerMemoryPerIP > 0 {
		notAbove("sandbox", "response", "front", "answer_memory_per_ip", int64(limits.ResponseBytes),
			front.MaxAnswerMemoryPerIP, settings.FormatSize)
	}
	notAbove("runtime", "timeout", "runtime", "max_timeout", int64(c.Runtime.Timeout),
		int64(c.Schema.MaxTimeout), duration)
	if f := fault.Of(c.Runtime.Sandbox.Validate()); f != nil {
		place, ok := values.Place("sandbox", "total_memory")
		if !ok || strings.HasPrefix(f.Detail, "[sandbox] memory ") {
			place, _ = values.Place("sandbox", "memory")
		}
		values.Problems.Errorf("", place, "%s", f.Detail)
	}
	hashes := &c.Runtime.Passwords.Hashes
	notAbove("password", "memory", "password", "max_memory", hashes.Memory, hashes.MaxMemory, settings.FormatSize)
	if f := fault.Of(hashes.Validate()); f != nil {
		place, ok := values.Place("password", "passes")
		if !ok {
			place, _ = values.Place("password", "memory")
		}
		values.Problems.Errorf("", place, "%s", f.Detail)
	}
}

// sections are the sections of the file in their order.
var sections = []string{
	"front", "runtime", "live", "jobs", "sandbox", "password", "store", "files", "keystore", "auth", "audit", "limit", "release",
	"outbound", "telemetry", "metrics", "record", "admin", "cluster", "build", "dev",
}

const templateHead = `# All settings of the runner with their defaults, generated from the options of its
# packages (go generate ./cmd/runner). Copy the lines that you change into the runner.toml
# of your app.
#
# The first of these applies: a flag, the environment variable RUNNER_<SECTION>_<KEY> (lists
# are separated by commas), this file, the default.
#
# A duration is one whole number with ms, s, m, h, d or w, a size one with b, kb, mb or gb.

`

const templateNames = `
# Values of the secrets that the schema declares: NAME = "value". The variable
# RUNNER_SECRETS_<NAME>, or the file that RUNNER_SECRETS_<NAME>_FILE names, is used first
# and is the better place.
[secrets]

# Values of the variables that the schema declares: NAME = value. The variable
# RUNNER_VARS_<NAME> is used first. A value is written as in the schema; those that are not
# whole numbers, true or false are in quotes: "600/minute".
[vars]
`

// Template returns a runner.toml with every setting at its default. comment returns the Go
// comment of a field of an option struct.
func Template(comment func(parent reflect.Type, field string) string) []byte {
	out := settings.Template(sections, comment, (&Config{}).options()...)
	return append(append([]byte(templateHead), out...), templateNames...)
}

// SandboxOptions returns the options of the sandbox with a cache in this directory; empty:
// without a cache.
func (c *Config) SandboxOptions(cache string) sandbox.Options {
	opt := c.Runtime.Sandbox
	opt.CacheDir = cache
	return opt
}

// DataDir returns the data directory of an app directory.
func (c *Config) DataDir(appDir string) string {
	if filepath.IsAbs(c.Store.Dir) {
		return c.Store.Dir
	}
	return filepath.Join(appDir, c.Store.Dir)
}
