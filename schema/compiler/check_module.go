package compiler

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"runner.example/internal/tree"
	"runner.example/schema"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// The limits of a module block.
const (
	maxModuleTexts    = 64       // in each of args, env and stub
	maxModuleBytes    = 16 << 10 // of all args, and of all env, with a zero byte after each
	maxStubBytes      = 256
	minStartTimeout   = 100 * time.Millisecond
	maxStartTimeout   = 5 * time.Minute
	maxStartTimeoutIn = "100ms and 5m"
)

// requestEnv are the names of environment variables that a program has of each request, requestEnvPrefixes the
// beginnings of others.
var (
	requestEnv = []string{
		"REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "CONTENT_LENGTH", "CONTENT_TYPE", "AUTH_TYPE",
		"GATEWAY_INTERFACE", "PATH_TRANSLATED",
	}
	requestEnvPrefixes = []string{"HTTP_", "RUNNER_", "REMOTE_", "SERVER_"}
)

// hostModules are the modules whose functions the runner has, which cannot be stubs.
var hostModules = []string{"runner", "wasi_snapshot_preview1"}

// checkModules checks the module blocks. Schema.CheckModules checks later whether the modules exist.
func (a *app) checkModules() {
	taken := seenNames{}
	for _, d := range a.decls {
		block, ok := d.(*syntax.ModuleDecl)
		if !ok {
			continue
		}
		a.settingsOnce(block.Settings)
		name := block.Name
		file := strings.TrimPrefix(strings.TrimSuffix(name.Name, ".wasm"), "build/")
		switch first, twice := taken.add(name); {
		case twice:
			a.Errorf("E550", name.Loc, "module %q is already declared at %s", name.Name, report.At(name.Loc, first))
			continue
		case file != name.Name && file != "":
			a.Errorf("E551", name.Loc, "a module has the name of its file in build/ without .wasm: write %q", file)
		case name.Name == "" && block.Quoted != nil || strings.Contains(name.Name, "/"):
			a.Errorf("E551", name.Loc, "%q is not the name of a file in build/ without .wasm", name.Name)
		}
		c := moduleChecker{a, schema.Module{Name: name.Name, Doc: block.Doc, Span: name.Loc}}
		for _, s := range block.Settings {
			c.setting(s)
		}
		a.schema.Modules = append(a.schema.Modules, c.module)
	}
}

// moduleChecker checks the settings of a module block, and fills in the module.
type moduleChecker struct {
	*app
	module schema.Module
}

func (c *moduleChecker) setting(s *syntax.Setting) {
	switch s.Name.Name {
	case "fresh":
		if lit, ok := c.Literal(s.Value, syntax.BoolLit, "true or false"); ok {
			c.module.Fresh = lit.Bool
		}
	case "args":
		c.args(s)
	case "env":
		c.env(s)
	case "files":
		c.files(s.Value)
	case "startTimeout":
		c.startTimeout(s.Value)
	case "stub":
		c.stub(s)
	}
}

func (c *moduleChecker) startTimeout(v syntax.SettingValue) {
	if d, ok := c.Duration(v, "s"); ok && (d < minStartTimeout || d > maxStartTimeout) {
		c.Errorf("E555", v.Span(), "startTimeout is not between %s", maxStartTimeoutIn)
	} else if ok {
		c.module.StartTimeout = d
	}
}

func (c *moduleChecker) args(s *syntax.Setting) {
	list, ok := s.Value.(*syntax.ListSetting)
	if !ok {
		c.Expected(s.Value, "a list of strings in brackets")
		return
	}
	bytes := 0
	for _, elem := range list.Elems {
		if lit, ok := c.text("args", elem); ok {
			c.module.Args = append(c.module.Args, lit.Text)
			bytes += len(lit.Text) + 1
		}
	}
	c.bounded(s, len(list.Elems), bytes)
}

func (c *moduleChecker) env(s *syntax.Setting) {
	block, ok := s.Value.(*syntax.MapSetting)
	if !ok {
		c.Expected(s.Value, `names and strings in braces, { NAME: "value" }`)
		return
	}
	taken, bytes := seenNames{}, 0
	for _, entry := range block.Entries {
		lit, ok := c.text("env", entry.Value)
		name := entry.Name.Name
		switch first, twice := taken.add(entry.Name); {
		case twice:
			c.Errorf("E556", entry.Name.Loc, "environment variable %s is already set at %s", name, report.At(entry.Name.Loc, first))
		case isOfRequest(name):
			c.Errorf("E556", entry.Name.Loc,
				"environment variable %s is one that each request sets, as are all that begin with %s: choose another name",
				name, strings.Join(requestEnvPrefixes, ", "))
		case ok:
			c.module.Env = append(c.module.Env, schema.EnvVar{Name: name, Value: lit.Text})
			bytes += len(name) + len("=") + len(lit.Text) + 1
		}
	}
	c.bounded(s, len(block.Entries), bytes)
}

// isOfRequest reports whether an environment variable can be one of a request: no text of the schema must stand for the
// caller or the server.
func isOfRequest(name string) bool {
	return slices.Contains(requestEnv, name) ||
		slices.ContainsFunc(requestEnvPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// text requires a string for args or env. It explains why the name of a secret or a variable is refused.
func (c *moduleChecker) text(setting string, v syntax.SettingValue) (*syntax.Literal, bool) {
	if name, is := v.(*syntax.NameSetting); is && !name.Call {
		_, secret := c.secrets[name.Name.Name]
		switch {
		case secret:
			c.Errorf("E557", name.Loc,
				"%s cannot have the secret %s: every function of the program could read it, and so could a crash report; call the operation secret",
				setting, name.Name.Name)
			return nil, false
		case c.vars[name.Name.Name] != nil:
			c.Errorf("E557", name.Loc,
				"%s cannot have the variable %s, whose value is that of a node: write a string, or call the operation var",
				setting, name.Name.Name)
			return nil, false
		}
	}
	return c.String(v)
}

// bounded reports a setting with too many texts, or too many bytes.
func (c *moduleChecker) bounded(s *syntax.Setting, n, bytes int) {
	if n > maxModuleTexts {
		c.Errorf("E555", s.Name.Loc, "%s has %d entries, and the limit is %d", s.Name.Name, n, maxModuleTexts)
	}
	if bytes > maxModuleBytes {
		c.Errorf("E555", s.Name.Loc, "%s has %d bytes, and the limit is %d: put the text into a file of the directory of files",
			s.Name.Name, bytes, maxModuleBytes)
	}
}

func (c *moduleChecker) files(v syntax.SettingValue) {
	lit, ok := c.String(v)
	if !ok {
		return
	}
	if problem := tree.CheckPath(lit.Text); problem != "" {
		c.Errorf("E558", lit.Loc, "the directory of files %s: write a path relative to the app directory, such as %q",
			problem, cmp.Or(plainPath(lit.Text), "lib"))
		return
	}
	c.module.Files, c.module.FilesSpan = lit.Text, lit.Loc
}

// plainPath returns what is left of a path without what CheckPath refuses.
func plainPath(path string) string {
	elements := slices.DeleteFunc(strings.Split(path, "/"), func(e string) bool { return e == "" || e == "." || e == ".." })
	if plain := strings.Join(elements, "/"); tree.CheckPath(plain) == "" {
		return plain
	}
	return ""
}

func (c *moduleChecker) stub(s *syntax.Setting) {
	list, ok := s.Value.(*syntax.ListSetting)
	if !ok {
		c.Expected(s.Value, "a list of strings in brackets")
		return
	}
	taken := map[string]bool{}
	for _, elem := range list.Elems {
		lit, ok := c.String(elem)
		switch {
		case !ok:
		case lit.Text == "" || len(lit.Text) > maxStubBytes:
			c.Errorf("E555", lit.Loc, "stub has a name of %d bytes: write one of 1 to %d", len(lit.Text), maxStubBytes)
		case slices.Contains(hostModules, lit.Text):
			c.Errorf("E555", lit.Loc, "the runner has the functions of %q, so they need no stubs: remove it", lit.Text)
		case taken[lit.Text]:
			c.Errorf("E555", lit.Loc, "stub has %q twice: remove one", lit.Text)
		default:
			taken[lit.Text] = true
			c.module.Stub = append(c.module.Stub, lit.Text)
		}
	}
	c.bounded(s, len(list.Elems), 0)
}
