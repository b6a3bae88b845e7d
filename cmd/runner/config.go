package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
)

const (
	kb = 1 << 10
	mb = 1 << 20
)

// config is everything that runner.toml, the environment and flags may say.
// Its sections carry the names of the rooms that obey them.
type config struct {
	front struct {
		listen              string
		hosts               []string
		trustedProxies      []string
		headerBytes         int64
		headerLines         int
		bodyMemory          int64
		answerMemory        int64
		answerMemoryPerIP   int64
		targetBytes         int64
		body, maxBody       int64
		readTimeout         time.Duration
		writeTimeout        time.Duration
		idleTimeout         time.Duration
		maxConnections      int
		maxConnectionsPerIP int
	}
	runtime struct {
		timeout, maxTimeout time.Duration
		shutdownTimeout     time.Duration
	}
	sandbox struct {
		memory          int64
		totalMemory     int64
		cpu             time.Duration
		breaker         bool
		instances       int
		queueWait       time.Duration
		hostCalls       int
		movedBytes      int64
		storeOperations int
		rows            int
		response        int64
		logLines        int
		logBytes        int64
		compileTimeout  time.Duration
		compileMemory   int64
	}
	store    struct{ dir string }
	keystore struct {
		pepperFile string
		keepDead   time.Duration
	}
	auth     struct{ insecureCookies bool }
	audit    struct{ keepRefused time.Duration }
	limit    struct{ counters int }
	outbound struct {
		allowPrivate bool
		fetches      int
		answer       int64
	}
	telemetry struct {
		level, format string
		accessLog     bool
		queue         int64
	}
	// secrets are the values of [secrets]; nil without any. Never printed.
	secrets map[string]string
	// secretPlaces says where they stand.
	secretPlaces map[string]diag.Span
}

// defaults is the configuration of a runner that was told nothing. The file
// runner.toml at the root of the project says the same.
func defaults() *config {
	var c config
	c.front.listen = "127.0.0.1:8080"
	c.front.headerBytes = 16 * kb
	c.front.headerLines = 100
	c.front.bodyMemory = 256 << 20
	c.front.answerMemory = 256 << 20
	c.front.targetBytes = 8 * kb
	c.front.body = mb
	c.front.maxBody = 64 * mb
	c.front.readTimeout = 10 * time.Second
	c.front.writeTimeout = 30 * time.Second
	c.front.idleTimeout = time.Minute
	c.front.maxConnections = 10_000
	c.runtime.timeout = 10 * time.Second
	c.runtime.maxTimeout = time.Minute
	c.runtime.shutdownTimeout = 10 * time.Second
	c.sandbox.memory = 64 * mb
	c.sandbox.cpu = time.Second
	c.sandbox.breaker = true
	c.sandbox.queueWait = time.Second
	c.sandbox.hostCalls = 1000
	c.sandbox.movedBytes = 10 * mb
	c.sandbox.storeOperations = 200
	c.sandbox.rows = 100_000
	c.sandbox.response = 8 * mb
	c.sandbox.logLines = 64
	c.sandbox.logBytes = 16 * kb
	c.sandbox.compileTimeout = 30 * time.Second
	c.sandbox.compileMemory = 768 * mb
	c.store.dir = "data"
	c.keystore.keepDead = keystore.DefaultKeepDead
	c.audit.keepRefused = 30 * 24 * time.Hour
	c.limit.counters = 100_000
	c.outbound.fetches = 50
	c.outbound.answer = 5 * mb
	c.telemetry.level = "info"
	c.telemetry.format = "json"
	c.telemetry.queue = mb
	return &c
}

// settings is the one list of keys: a key that is not here is unknown.
func (c *config) settings() []setting {
	const many = math.MaxInt32
	return []setting{
		{"front", "listen", text{&c.front.listen, checkListen}},
		{"front", "hosts", list{&c.front.hosts, checkHost}},
		{"front", "trusted_proxies", list{&c.front.trustedProxies, checkPrefix}},
		{"front", "header_bytes", size{&c.front.headerBytes, kb, mb}},
		{"front", "header_lines", count{&c.front.headerLines, 1, 10_000}},
		{"front", "target_bytes", size{&c.front.targetBytes, 64, 64 * kb}},
		{"front", "body", size{&c.front.body, 1, 1 << 30}},
		{"front", "max_body", size{&c.front.maxBody, 1, 1 << 30}},
		{"front", "body_memory", size{&c.front.bodyMemory, mb, 1 << 40}},
		{"front", "answer_memory", size{&c.front.answerMemory, mb, 1 << 40}},
		{"front", "answer_memory_per_ip", size{&c.front.answerMemoryPerIP, 0, 1 << 40}},
		{"front", "read_timeout", duration{&c.front.readTimeout, time.Millisecond, time.Hour}},
		{"front", "write_timeout", duration{&c.front.writeTimeout, time.Millisecond, time.Hour}},
		{"front", "idle_timeout", duration{&c.front.idleTimeout, time.Millisecond, 24 * time.Hour}},
		{"front", "max_connections", count{&c.front.maxConnections, 1, many}},
		{"front", "max_connections_per_ip", count{&c.front.maxConnectionsPerIP, 0, many}},
		{"runtime", "timeout", duration{&c.runtime.timeout, time.Millisecond, time.Hour}},
		{"runtime", "max_timeout", duration{&c.runtime.maxTimeout, time.Millisecond, time.Hour}},
		{"runtime", "shutdown_timeout", duration{&c.runtime.shutdownTimeout, 0, time.Hour}},
		{"sandbox", "memory", pages{&c.sandbox.memory}},
		{"sandbox", "total_memory", size{&c.sandbox.totalMemory, 0, 1 << 42}},
		{"sandbox", "cpu", duration{&c.sandbox.cpu, time.Millisecond, time.Hour}},
		{"sandbox", "breaker", flag{&c.sandbox.breaker}},
		{"sandbox", "instances", count{&c.sandbox.instances, 0, 100_000}},
		{"sandbox", "queue_wait", duration{&c.sandbox.queueWait, time.Millisecond, time.Minute}},
		{"sandbox", "host_calls", count{&c.sandbox.hostCalls, 1, many}},
		{"sandbox", "moved_bytes", size{&c.sandbox.movedBytes, kb, 1 << 30}},
		{"sandbox", "store_operations", count{&c.sandbox.storeOperations, 1, many}},
		{"sandbox", "rows", count{&c.sandbox.rows, 1, many}},
		{"sandbox", "response", size{&c.sandbox.response, kb, 1 << 30}},
		{"sandbox", "log_lines", count{&c.sandbox.logLines, 1, many}},
		{"sandbox", "log_bytes", size{&c.sandbox.logBytes, 1, mb}},
		{"sandbox", "compile_timeout", duration{&c.sandbox.compileTimeout, 10 * time.Millisecond, time.Hour}},
		{"sandbox", "compile_memory", size{&c.sandbox.compileMemory, 64 * mb, 1 << 40}},
		{"store", "dir", text{&c.store.dir, notEmpty}},
		{"keystore", "pepper_file", text{&c.keystore.pepperFile, nil}},
		{"keystore", "keep_dead", duration{&c.keystore.keepDead, time.Hour, 100 * 365 * 24 * time.Hour}},
		{"auth", "insecure_cookies", flag{&c.auth.insecureCookies}},
		{"audit", "keep_refused", duration{&c.audit.keepRefused, time.Hour, 0}},
		{"limit", "counters", count{&c.limit.counters, 1, 100_000_000}},
		{"outbound", "allow_private", flag{&c.outbound.allowPrivate}},
		{"outbound", "fetches", count{&c.outbound.fetches, 1, 10_000}},
		{"outbound", "answer", size{&c.outbound.answer, kb, 1 << 30}},
		{"telemetry", "level", text{&c.telemetry.level, oneOf("debug", "info", "warn", "error")}},
		{"telemetry", "format", text{&c.telemetry.format, oneOf("json", "text")}},
		{"telemetry", "access_log", flag{&c.telemetry.accessLog}},
		{"telemetry", "queue", size{&c.telemetry.queue, 64 * kb, 1 << 30}},
	}
}

// secretsSection is the one section whose keys are the user's own.
const secretsSection = "secrets"

// reader fills a config and collects every mistake on the way.
type reader struct {
	config *config
	all    []setting
	found  diag.List
	// places says where each setting that is no default was set.
	places map[string]diag.Span
}

// readConfig reads the file called path, unless it is missing and may be, then
// the environment, given as os.Environ gives it. The list holds all mistakes,
// and warnings about variables that look misspelt; with a mistake in it the
// config is of no use. An error means that the file cannot be read at all.
func readConfig(path string, mayBeMissing bool, environ []string) (*config, diag.List, error) {
	r := &reader{config: defaults(), places: map[string]diag.Span{}}
	r.all = r.config.settings()
	src, err := os.ReadFile(path)
	switch {
	case err == nil:
		r.readFile(path, src)
	case !mayBeMissing || !errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	r.readEnvironment(environ)
	r.checkTogether()
	return r.config, r.found, nil
}

// checkTogether finds settings that are right by themselves only.
func (r *reader) checkTogether() {
	c := r.config
	if c.front.body > c.front.maxBody {
		r.clash("[front] body", "[front] max_body", formatSize(c.front.body), formatSize(c.front.maxBody))
	}
	if c.sandbox.response > c.front.answerMemory {
		r.clash("[sandbox] response", "[front] answer_memory", formatSize(c.sandbox.response), formatSize(c.front.answerMemory))
	}
	if c.front.answerMemoryPerIP > 0 && c.sandbox.response > c.front.answerMemoryPerIP {
		r.clash("[sandbox] response", "[front] answer_memory_per_ip", formatSize(c.sandbox.response), formatSize(c.front.answerMemoryPerIP))
	}
	if c.runtime.timeout > c.runtime.maxTimeout {
		r.clash("[runtime] timeout", "[runtime] max_timeout", formatDuration(c.runtime.timeout), formatDuration(c.runtime.maxTimeout))
	}
	if f := fault.Of(c.sandboxOptions("").Validate()); f != nil {
		place, ok := r.places["[sandbox] total_memory"]
		if !ok || strings.HasPrefix(f.Detail, "[sandbox] memory ") {
			place = r.places["[sandbox] memory"]
		}
		r.found.Errorf("", place, "%s", f.Detail)
	}
}

func (r *reader) clash(name, bound, value, limit string) {
	place, ok := r.places[name]
	if !ok {
		place = r.places[bound]
	}
	r.found.Errorf("", place, "%s is %s, above the %s of %s: lower the one or raise the other", name, value, limit, bound)
}

func (r *reader) readEnvironment(environ []string) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		i := slices.IndexFunc(r.all, func(s setting) bool { return s.variable() == name })
		place := diag.Span{File: name}
		switch {
		case i >= 0:
			r.refuse(r.all[i], place, r.all[i].value.fromText(value))
			r.places[r.all[i].name()] = place
		case r.looksMisspelt(name):
			r.found.Warnf("", place, "no setting has this variable%s", diag.DidYouMean(name, r.variables()))
		}
	}
}

// looksMisspelt tells RUNNER_FRONT_LISTN from variables that only share the
// prefix, as an orchestrator makes for a service called "runner".
func (r *reader) looksMisspelt(name string) bool {
	if !strings.HasPrefix(name, "RUNNER_") || strings.HasPrefix(name, "RUNNER_SECRETS_") {
		return false
	}
	return diag.Suggest(name, r.variables()) != ""
}

func (r *reader) variables() []string {
	names := make([]string, len(r.all))
	for i, s := range r.all {
		names[i] = s.variable()
	}
	return names
}

// readFile reads a whole runner.toml and goes on behind every mistake but one
// of TOML itself. It never shows a line of the file: it may hold a secret.
func (r *reader) readFile(path string, src []byte) {
	var sections map[string]toml.Primitive
	file := tomlFile{path: path, src: src}
	meta, err := toml.Decode(string(src), &sections)
	if err != nil {
		r.found.Errorf("", file.placeOf(err), "not TOML here: %s", remedyOf(err))
		return
	}
	file.meta = meta
	for name, section := range sections {
		r.readSection(&file, name, section)
	}
}

func (r *reader) readSection(file *tomlFile, name string, section toml.Primitive) {
	known := r.sections()
	_, isTable := file.value(section).(map[string]any)
	switch {
	case !isTable:
		r.found.Errorf("", file.keyPlace(name, section), "key %q is in no section%s", name, r.homeOf(name))
	case name == secretsSection:
		r.readSecrets(file, file.keys(section))
	case !slices.Contains(known, name):
		r.found.Errorf("", file.keyPlace(name, section), "unknown section [%s]%s", name, diag.DidYouMean(name, known))
	default:
		for key, in := range file.keys(section) {
			r.readKey(file, name, key, in)
		}
	}
}

func (r *reader) readKey(file *tomlFile, section, key string, in toml.Primitive) {
	i := slices.IndexFunc(r.all, func(s setting) bool { return s.section == section && s.key == key })
	if i < 0 {
		r.found.Errorf("", file.keyPlace(key, in), "unknown key %q in [%s]%s", key, section, r.hintFor(section, key))
		return
	}
	place := file.valuePlace(in)
	r.refuse(r.all[i], place, r.all[i].value.fromTOML(file.value(in)))
	r.places[r.all[i].name()] = place
}

// refuse notes what is wrong with a value: nothing, one thing or, of a list,
// several.
func (r *reader) refuse(s setting, place diag.Span, err error) {
	if err == nil {
		return
	}
	for _, one := range parts(err) {
		r.found.Errorf("", place, "%s: %v", s.name(), one)
	}
}

func (r *reader) readSecrets(file *tomlFile, keys map[string]toml.Primitive) {
	r.config.secrets, r.config.secretPlaces = map[string]string{}, map[string]diag.Span{}
	for name, in := range keys {
		s, ok := file.value(in).(string)
		if !ok || s == "" {
			r.found.Errorf("", file.keyPlace(name, in), "secret %q must be a string in quotes, and not an empty one", name)
			continue
		}
		r.config.secrets[name], r.config.secretPlaces[name] = s, file.keyPlace(name, in)
	}
}

// hintFor names the key that was probably meant: one of the section's, else
// the same name in another section.
func (r *reader) hintFor(section, key string) string {
	var here []string
	for _, s := range r.all {
		if s.section == section {
			here = append(here, s.key)
		}
	}
	if hint := diag.DidYouMean(key, here); hint != "" {
		return hint
	}
	return r.homeOf(key)
}

// homeOf says in which section a key of that name lives.
func (r *reader) homeOf(key string) string {
	for _, s := range r.all {
		if s.key == key {
			return fmt.Sprintf(" (it belongs to [%s])", s.section)
		}
	}
	return ""
}

func (r *reader) sections() []string {
	names := []string{secretsSection}
	for _, s := range r.all {
		if !slices.Contains(names, s.section) {
			names = append(names, s.section)
		}
	}
	return names
}

// tomlFile knows where things stand in a parsed file.
type tomlFile struct {
	path string
	src  []byte
	meta toml.MetaData
}

// pointer refuses every value: the decoder's error then says where it stands,
// which the library tells in no other way.
type pointer struct{}

func (pointer) UnmarshalTOML(any) error { return errors.New("here") }

// keys gives what stands in a table.
func (f *tomlFile) keys(table toml.Primitive) map[string]toml.Primitive {
	var keys map[string]toml.Primitive
	if f.meta.PrimitiveDecode(table, &keys) != nil {
		return nil
	}
	return keys
}

// value gives what stands behind a key, as the TOML library's own types.
func (f *tomlFile) value(in toml.Primitive) any {
	var v any
	if f.meta.PrimitiveDecode(in, &v) != nil {
		return nil
	}
	return v
}

// valuePlace points at the value itself, behind an opening quote or bracket.
func (f *tomlFile) valuePlace(in toml.Primitive) diag.Span {
	start := f.offset(in)
	if start > 0 && (f.src[start-1] == '"' || f.src[start-1] == '\'' || f.src[start-1] == '[') {
		start--
	}
	return f.span(start)
}

// keyPlace points at the key of a value or at the name of a section.
func (f *tomlFile) keyPlace(key string, in toml.Primitive) diag.Span {
	start := f.offset(in)
	if i := bytes.LastIndex(f.src[:start], []byte(key)); i >= 0 && f.src[start] != '[' {
		return f.span(i)
	}
	if i := bytes.Index(f.src[start:], []byte(key)); i >= 0 {
		return f.span(start + i)
	}
	return f.span(start)
}

func (f *tomlFile) offset(in toml.Primitive) int {
	place, _ := errors.AsType[toml.ParseError](f.meta.PrimitiveDecode(in, &pointer{}))
	return min(place.Position.Start, len(f.src)-1)
}

func (f *tomlFile) placeOf(err error) diag.Span {
	if place, ok := errors.AsType[toml.ParseError](err); ok {
		return f.span(place.Position.Start)
	}
	return diag.Span{File: f.path}
}

func (f *tomlFile) span(offset int) diag.Span {
	before := f.src[:max(0, min(offset, len(f.src)))]
	line := bytes.LastIndexByte(before, '\n') + 1
	at := diag.Pos{
		Offset: len(before),
		Line:   bytes.Count(before, []byte("\n")) + 1,
		Col:    utf8.RuneCount(before[line:]) + 1,
	}
	return diag.Span{File: f.path, Start: at, End: at}
}

// remedyOf says what to do about a mistake of TOML itself. The library's messages
// quote what they complain about, and that may be a secret: those alone are passed on
// that are fixed texts.
func remedyOf(err error) string {
	parse, _ := errors.AsType[toml.ParseError](err)
	switch message := parse.Message; {
	case strings.HasPrefix(message, "Key '"):
		return "the key was defined before: keep it once"
	case strings.HasPrefix(message, "unexpected EOF"), message == "strings cannot contain newlines":
		return message
	case strings.HasPrefix(message, "invalid UTF-8"):
		return "the file is not UTF-8"
	case strings.HasPrefix(message, "invalid escape"), strings.HasPrefix(message, "Escaped character"), strings.Contains(message, "hexadecimal digits after"):
		return `write a backslash in a string as \\`
	}
	return "write strings in quotes"
}
