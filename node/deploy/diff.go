package deploy

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/settings"
	"runner.example/internal/tree"
	"runner.example/node/admin"
	"runner.example/node/release"
	"runner.example/schema"
	"runner.example/schema/compiler"
	"runner.example/schema/format"
	"runner.example/schema/syntax"
	"runner.example/state/store"
)

// Difference is what changes from one release to another.
type Difference struct {
	// Before and After are the ids of the releases; Before is empty for none.
	Before string `json:"before"`
	After  string `json:"after"`
	// Changes are in the order of Kinds, and sorted by name.
	Changes []Change `json:"changes"`
	// Excerpt has what an activation would refuse or warn about, given the rows and keys.
	diag.Excerpt
	// Notes say what could not be compared.
	Notes []string `json:"notes,omitempty"`

	sources []diag.Source // of Findings
}

// add adds diagnostics of this machine.
func (d *Difference) add(found diag.List) {
	shown := append(diag.List(d.Findings), found...).Excerpt()
	shown.Total += d.Total - len(d.Findings)
	d.Excerpt = shown
}

// Change is one addition, removal or change.
type Change struct {
	// Change is "added", "removed" or "changed".
	Change string `json:"change"`
	// Kind is one of Kinds.
	Kind string `json:"kind"`
	// Name is unique among the releases' declarations of that kind: "GET /orders", "Order.total".
	Name string `json:"name"`
	// Properties are those that differ; all of them if the declaration was added or removed.
	Properties []Property `json:"properties,omitempty"`
}

// Property is a part of a declaration. Before or After is empty if it is absent.
type Property struct {
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Kinds are the kinds of declarations, in the order in which they are reported.
var Kinds = []string{"app", "route", "function", "job", "auth", "api keys", "scope", "grant", "entity", "field", "index", "policy", "type", "enum", "secret", "var", "outbound", "module", "assets", "file"}

// declared is the name of the property of declarations that have one: what is written after the name.
const declared = "declared"

// declaration is an item of a release.
type declaration struct {
	kind, name string
	properties []Property // their text is in After
}

// Compare returns the changes from one release to another; the zero value stands for no release. The error is a *console.Problems if a
// schema has errors: another version of the runner has checked it.
func Compare(before, after admin.ReleaseSources) (Difference, error) {
	d := Difference{Before: before.ID, After: after.ID, Changes: []Change{}, Excerpt: diag.List{}.Excerpt()}
	old, err := declarationsOf(before)
	if err != nil {
		return d, err
	}
	now, err := declarationsOf(after)
	if err != nil {
		return d, err
	}
	for key, b := range old {
		if _, kept := now[key]; !kept {
			d.Changes = append(d.Changes, Change{"removed", b.kind, b.name, changed(b.properties, nil)})
		}
	}
	for key, a := range now {
		if b, known := old[key]; !known {
			d.Changes = append(d.Changes, Change{"added", a.kind, a.name, changed(nil, a.properties)})
		} else if differ := changed(b.properties, a.properties); len(differ) > 0 {
			d.Changes = append(d.Changes, Change{"changed", a.kind, a.name, differ})
		}
	}
	d.Changes = append(d.Changes, compareFiles(before, after)...)
	slices.SortFunc(d.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(slices.Index(Kinds, a.Kind), slices.Index(Kinds, b.Kind)), cmp.Compare(a.Name, b.Name))
	})
	return d, nil
}

// changed returns the properties that differ, with their text before and after.
func changed(before, after []Property) (all []Property) {
	text := func(properties []Property, name string) string {
		for _, p := range properties {
			if p.Name == name {
				return p.After
			}
		}
		return ""
	}
	for _, p := range after {
		if old := text(before, p.Name); old != p.After {
			all = append(all, Property{p.Name, old, p.After})
		}
	}
	for _, p := range before {
		if p.After != "" && !slices.ContainsFunc(after, func(a Property) bool { return a.Name == p.Name }) {
			all = append(all, Property{p.Name, p.After, ""})
		}
	}
	return all
}

// inventory collects the declarations of a release.
type inventory map[[2]string]*declaration

// add adds a property of a declaration. An empty text adds the declaration alone.
func (v inventory) add(kind, name, property, text string) {
	key := [2]string{kind, name}
	if v[key] == nil {
		v[key] = &declaration{kind: kind, name: name}
	}
	if text != "" {
		v[key].properties = append(v[key].properties, Property{Name: property, After: text})
	}
}

func declarationsOf(r admin.ReleaseSources) (inventory, error) {
	v := inventory{}
	if r.ID == "" {
		return v, nil
	}
	s, found := compiler.Compile(r.Sources, compiler.Checked())
	if s == nil {
		return nil, &console.Problems{What: "the schema of " + r.ID + " has errors: " + console.Counted(found), Sources: r.Sources, List: found}
	}
	for _, route := range s.Routes {
		v.addRoute("route", route.Method+" "+route.Path, &route)
	}
	for _, f := range s.Functions {
		v.add("function", f.Name, "exposed", textIf(f.Exposed, "yes"))
		if f.Exposed {
			v.addRoute("function", f.Name, f.Route())
		} else {
			v.add("function", f.Name, "timeout", duration(f.Route().Timeout))
		}
	}
	for i := range s.Jobs {
		v.addJob(&s.Jobs[i])
	}
	for _, source := range r.Sources {
		v.addSource(source)
	}
	for _, name := range s.Secrets {
		v.add("secret", name, "", "")
	}
	for _, origin := range s.Outbound {
		v.add("outbound", origin, "", "")
	}
	if s.OutboundPublic {
		v.add("outbound", "public", "", "")
	}
	for _, m := range s.Modules {
		v.addModule(&m)
	}
	if s.Python != nil {
		v.addModule(s.Python.Module())
	}
	for i := range s.Assets {
		v.addAssets(r, &s.Assets[i])
	}
	for _, f := range r.Files {
		if release.IsModule(f.Name) {
			v.add("module", f.Name, "size", console.Plural(int(f.Size), "byte"))
			v.add("module", f.Name, "sha256", f.Digest.String())
		}
		switch module, ok := release.ModuleOf(f.Name); {
		case ok && release.IsTree(f.Name):
			v.add("module", module, "files", describeTree(r, f))
		case ok:
			v.add("module", module, "debug", f.Digest.String())
		}
	}
	return v, nil
}

// describeTree returns the digest of a tree, and how many files it has if that is known.
func describeTree(r admin.ReleaseSources, listing release.File) string {
	text := listing.Digest.String()
	files, bytes := len(r.Listings[listing.Name]), int64(0)
	for _, f := range r.Listings[listing.Name] {
		bytes += f.Size
	}
	for _, info := range r.Trees {
		if info.Name == listing.Name {
			files, bytes = info.Files, info.Bytes
		}
	}
	if files == 0 {
		return text
	}
	return fmt.Sprintf("%s, %s, %s", console.Plural(files, "file"), console.Plural(int(bytes), "byte"), text)
}

// addModule adds the settings of a module block.
func (v inventory) addModule(m *schema.Module) {
	var env []string
	for _, e := range m.Env {
		env = append(env, fmt.Sprintf("%s=%q", e.Name, e.Value))
	}
	quoted := func(texts []string) string {
		var all []string
		for _, text := range texts {
			all = append(all, strconv.Quote(text))
		}
		return strings.Join(all, " ")
	}
	timeout := ""
	if m.StartTimeout > 0 {
		timeout = settings.FormatDuration(m.StartTimeout)
	}
	for _, p := range []Property{
		{Name: "fresh", After: textIf(m.Fresh, "yes")}, {Name: "args", After: quoted(m.Args)}, {Name: "env", After: strings.Join(env, " ")},
		{Name: "directory", After: m.Files}, {Name: "startTimeout", After: timeout}, {Name: "stub", After: quoted(m.Stub)},
	} {
		if p.After != "" {
			v.add("module", "build/"+m.Name+".wasm", p.Name, p.After)
		}
	}
}

// addAssets adds a directory of assets with its effective settings, and its files.
func (v inventory) addAssets(r admin.ReleaseSources, a *schema.Assets) {
	var headers []string
	for _, h := range a.Headers {
		headers = append(headers, h.Name+": "+h.Value)
	}
	v.addRoute("assets", a.Path, a.Route())
	for _, p := range []Property{
		{Name: "directory", After: a.Dir}, {Name: "spa", After: a.SPA}, {Name: "headers", After: strings.Join(headers, ", ")},
	} {
		v.add("assets", a.Path, p.Name, p.After)
	}
	for _, f := range r.Files {
		if f.Name == release.AssetsOf(a.Dir) {
			v.add("assets", a.Path, "files", describeTree(r, f))
		}
	}
}

// compareFiles returns the files that differ in trees of both releases. Of a tree that one of them does not have, the
// module says how many files there are.
func compareFiles(before, after admin.ReleaseSources) (changes []Change) {
	for listing, files := range after.Listings {
		old := map[string]tree.File{}
		for _, f := range before.Listings[listing] {
			old[f.Path] = f
		}
		if len(old) == 0 {
			continue
		}
		in, _ := release.ModuleOf(listing)
		in += " "
		if dir, ok := release.AssetsDir(listing); ok {
			in = dir + "/"
		}
		name := func(f tree.File) string { return in + tree.Quoted(f.Path) }
		for _, f := range files {
			was, known := old[f.Path]
			delete(old, f.Path)
			switch {
			case !known:
				changes = append(changes, Change{"added", "file", name(f), changed(nil, fileProperties(f))})
			case was.SHA256 != f.SHA256:
				changes = append(changes, Change{"changed", "file", name(f), changed(fileProperties(was), fileProperties(f))})
			}
		}
		for _, f := range old {
			changes = append(changes, Change{"removed", "file", name(f), changed(fileProperties(f), nil)})
		}
	}
	return changes
}

func fileProperties(f tree.File) []Property {
	return []Property{
		{Name: "size", After: console.Plural(int(f.Size), "byte")},
		{Name: "sha256", After: store.Digest(f.SHA256).String()},
	}
}

// addRoute adds the effective settings of a route. A setting that has its default has no text.
func (v inventory) addRoute(kind, name string, r *schema.Route) {
	var limits []string
	for _, l := range r.Limits {
		limits = append(limits, l.String())
		if l.Var != "" { // the value is that of a node
			_, by, _ := strings.Cut(l.String(), " ")
			limits[len(limits)-1] = strings.TrimSpace(l.Var + " " + by)
		}
	}
	verify, body, result := "", "", ""
	if r.Verify != nil {
		verify = r.Verify.String()
		if r.Verify.Tolerance > 0 {
			verify = strings.TrimSuffix(verify, ")") + ", tolerance: " + settings.FormatDuration(r.Verify.Tolerance) + ")"
		}
	}
	if r.BodyBytes > 0 {
		body = settings.FormatSize(r.BodyBytes)
	}
	if r.Result != nil {
		result = r.Result.String()
	}
	handler := r.Target()
	if kind == "function" { // its handler has its name
		handler, result = "", ""
	}
	for _, p := range []Property{
		{Name: "handler", After: handler}, {Name: "auth", After: r.Auth.String()}, {Name: "rateLimit", After: strings.Join(limits, ", ")},
		{Name: "body", After: body}, {Name: "upload", After: textIf(r.Upload, "on")}, {Name: "timeout", After: duration(r.Timeout)}, {Name: "stream", After: duration(r.Stream)},
		{Name: "live", After: duration(r.Live)}, {Name: "as", After: r.As},
		{Name: "input", After: r.Input}, {Name: "query", After: r.Query}, {Name: "result", After: result},
		{Name: "verify", After: verify}, {Name: "csrf", After: textIf(r.CSRFOff, "off")}, {Name: "mints", After: textIf(r.CreatesSession, "session")},
		{Name: "cors", After: strings.Join(r.CORS, ", ")},
	} {
		v.add(kind, name, p.Name, p.After)
	}
}

// addJob adds the effective settings of a job.
func (v inventory) addJob(j *schema.Job) {
	concurrency, schedule := "", ""
	if c := j.Concurrency; c != nil {
		if concurrency = strconv.Itoa(c.Max); c.By != "" {
			concurrency += " by " + c.By
		}
	}
	if s := j.Schedule; s != nil {
		schedule = fmt.Sprintf("%q in %q", s.Cron, s.Zone)
	}
	for _, p := range []Property{
		{Name: "as", After: j.As}, {Name: "retries", After: strconv.Itoa(j.Retries)}, {Name: "backoff", After: settings.FormatDuration(j.Backoff)},
		{Name: "timeout", After: duration(j.Route().Timeout)}, {Name: "concurrency", After: concurrency}, {Name: "schedule", After: schedule},
	} {
		v.add("job", j.Name, p.Name, p.After)
	}
}

func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return settings.FormatDuration(d)
}

func textIf(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// addSource adds declarations as they are written, in canonical form.
func (v inventory) addSource(source diag.Source) {
	if formatted, found := format.Format(source); !found.HasErrors() {
		source.Text = formatted
	}
	file, _ := syntax.Parse(source)
	w := written{file, source.Text}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *syntax.AppDecl:
			v.add("app", d.Name.Name, "", "")
		case *syntax.AuthDecl:
			for _, s := range d.Sessions {
				v.add("auth", "session "+s.Kind.Name, declared, w.text(s.Loc))
			}
			v.addSettings("auth", d.Settings, w)
		case *syntax.VarDecl:
			v.add("var", d.Name.Name, "type", d.Type.Name)
			if d.Default != nil || d.Rate != nil {
				v.add("var", d.Name.Name, "default", w.text(d.DefaultSpan()))
			}
		case *syntax.EnumDecl:
			for i, value := range d.Values {
				v.add("enum", d.Name.Name+"."+value.Name, "attributes", w.attrs(d.Attrs[i]))
			}
		case *syntax.TypeDecl:
			v.addFields("type", d.Name.Name, d.Fields, w)
		case *syntax.EntityDecl:
			v.add("entity", d.Name.Name, "attributes", w.attrs(d.NameAttrs))
			v.addFields("field", d.Name.Name, d.Fields, w)
			for _, attr := range d.Attrs {
				v.add("index", d.Name.Name+" "+w.text(attr.Loc), "", "")
			}
			for _, p := range d.Policies {
				v.add("policy", d.Name.Name+" "+w.text(p.Loc), "", "")
			}
		case *syntax.APIKeysDecl:
			v.addSettings("api keys", d.Settings, w)
			for _, block := range d.Blocks {
				for _, scope := range block.Scopes {
					v.addScope(scope, w)
				}
			}
		case *syntax.FunctionsDecl:
			for _, f := range d.Functions {
				v.addParameters("function", f, w)
				if f.Result != nil {
					v.add("function", f.Name.Name, "result", w.text(f.Result.Loc))
				}
			}
		case *syntax.JobsDecl:
			for _, j := range d.Jobs {
				v.addParameters("job", j, w)
			}
		}
	}
}

func (v inventory) addParameters(kind string, f *syntax.FunctionDecl, w written) {
	var params []string
	for _, p := range f.Params {
		params = append(params, w.text(p.Loc))
	}
	v.add(kind, f.Name.Name, "parameters", strings.Join(params, ", "))
}

// attrs returns attributes as they are written.
func (w written) attrs(list []*syntax.FieldAttr) string {
	var texts []string
	for _, attr := range list {
		texts = append(texts, w.text(attr.Loc))
	}
	return strings.Join(texts, " ")
}

func (v inventory) addSettings(kind string, all []*syntax.Setting, w written) {
	for _, s := range all {
		v.add(kind, s.Name.Name, declared, w.text(s.Value.Span()))
	}
}

func (v inventory) addFields(kind, owner string, fields []*syntax.FieldDecl, w written) {
	for _, f := range fields {
		_, text, _ := strings.Cut(w.text(f.Loc), ":")
		text = strings.TrimSpace(text)
		if f.Omits {
			text += " (may be absent)"
		}
		v.add(kind, owner+"."+f.Name.Name, declared, text)
	}
}

func (v inventory) addScope(s *syntax.ScopeDecl, w written) {
	v.add("scope", s.Name.Name, "system", w.text(s.System.Span()))
	v.add("scope", s.Name.Name, "allTenants", textIf(len(s.AllTenants) > 0, "yes"))
	for _, d := range slices.Concat(s.Issues, s.Manages) {
		v.add("scope", s.Name.Name, d.Word, w.text(d.When.Span()))
	}
	for _, g := range s.Grants {
		v.add("grant", s.Name.Name+" "+w.text(g.Loc), "", "")
	}
}

// written is a source with its syntax tree.
type written struct {
	file   *syntax.File
	source []byte
}

// text returns what is written in a span, on one line and without comments.
func (w written) text(span diag.Span) string {
	var out strings.Builder
	end := -1
	for _, token := range w.file.Tokens {
		if token.Loc.Start.Offset < span.Start.Offset || token.Loc.End.Offset > span.End.Offset {
			continue
		}
		if end >= 0 {
			between, comment, _ := bytes.Cut(w.source[end:token.Loc.Start.Offset], []byte("//"))
			if bytes.Contains(between, []byte(",")) {
				out.WriteString(",")
			}
			if len(comment) > 0 || bytes.ContainsAny(between, " \n\t") {
				out.WriteString(" ")
			}
		}
		out.WriteString(token.Text)
		end = token.Loc.End.Offset
	}
	return out.String()
}
