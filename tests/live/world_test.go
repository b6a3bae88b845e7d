package live_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// world is a random schema: entities with relations, and rules about who reads their rows. It is also a plain model of these
// rows and rules.
//
// Each row belongs to a part. A write changes rows of one part, and a rule looks only at rows of the part of its row. So each
// part has its own serial order of writes, its versions, while one commit may have writes of several parts.
type world struct {
	random   *rand.Rand
	tenants  bool
	parts    int
	entities []*entity
	scopes   []string // of keys that read
}

type entity struct {
	name    string
	tenant  bool    // a row belongs to the tenant of its writer
	parent  *entity // what the relation parent refers to; nil: there is none
	cascade bool    // a row is removed with its parent
	allow   map[string]*rule
	deny    map[string]*rule
}

// The kinds of callers, apart from scopes of keys.
const (
	sessions  = "session"
	anonymous = "anonymous"
)

// who is a caller.
type who struct {
	name   string // in messages
	header string // with its credential
	kind   string // sessions, anonymous or a scope
	user   string
	tenant string
	boss   bool // a session that reads and writes all rows of its tenant
}

// rule is a condition of rows.
type rule struct {
	text  string
	timed bool
	holds func(s *state, r *row, w *who) truth
}

// truth is a truth value of three-valued logic, as in SQL.
type truth int

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// row is a row of the model.
type row struct {
	ID     string     `json:"id"`
	Name   string     `json:"name"`
	Part   int        `json:"part"`
	Rev    int        `json:"rev"` // the version that wrote it
	K      int        `json:"k"`
	Rank   int        `json:"rank"`
	Flag   bool       `json:"flag"`
	Owner  *string    `json:"owner"`
	Until  *time.Time `json:"until"`
	Parent *string    `json:"parent"`
	tenant string
}

// state has the rows of a part at a version, and a time.
type state struct {
	rows map[*entity]map[string]*row // by id
	at   time.Time
}

func newState() *state { return &state{rows: map[*entity]map[string]*row{}} }

// clone copies the maps. Rows are not changed in place.
func (s *state) clone() *state {
	c := newState()
	for e, rows := range s.rows {
		c.rows[e] = maps.Clone(rows)
	}
	return c
}

const (
	users       = 2
	names       = 6 // of rows of an entity, a part and a tenant
	categories  = 3 // values of k
	maxUntil    = 2 * time.Second
	tenantField = "  org: Org @tenant\n"
)

func newWorld(seed uint64) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 1)), scopes: []string{"reader0", "reader1"}}
	w.tenants, w.parts = w.random.IntN(2) == 0, 1+w.random.IntN(3)
	for i := range 2 + w.random.IntN(3) {
		e := &entity{name: fmt.Sprint("E", i), allow: map[string]*rule{}, deny: map[string]*rule{}, cascade: w.random.IntN(2) == 0}
		if i > 0 && w.random.IntN(4) > 0 {
			e.parent = w.entities[w.random.IntN(i)]
		}
		e.tenant = w.tenants && (w.random.IntN(2) == 0 || e.parent != nil && e.parent.tenant)
		w.entities = append(w.entities, e)
	}
	for _, e := range w.entities {
		w.rules(e)
	}
	return w
}

// rules makes new random rules of e.
func (w *world) rules(e *entity) {
	clear(e.allow)
	clear(e.deny)
	for _, kind := range append([]string{sessions, anonymous}, w.scopes...) {
		if kind == anonymous && e.tenant {
			continue
		}
		if w.random.IntN(6) > 0 {
			e.allow[kind] = w.rule(e, 2)
		}
		if w.random.IntN(4) == 0 {
			e.deny[kind] = w.rule(e, 1)
		}
	}
}

// rule is a random rule of rows of e.
func (w *world) rule(e *entity, depth int) *rule {
	if depth > 0 && w.random.IntN(2) == 0 {
		a, b := w.rule(e, depth-1), w.rule(e, depth-1)
		timed := a.timed || b.timed
		switch w.random.IntN(3) {
		case 0:
			return &rule{"(" + a.text + " and " + b.text + ")", timed, func(s *state, r *row, c *who) truth { return min(a.holds(s, r, c), b.holds(s, r, c)) }}
		case 1:
			return &rule{"(" + a.text + " or " + b.text + ")", timed, func(s *state, r *row, c *who) truth { return max(a.holds(s, r, c), b.holds(s, r, c)) }}
		}
		return &rule{"not (" + a.text + ")", a.timed, func(s *state, r *row, c *who) truth { return yes - a.holds(s, r, c) }}
	}
	k := w.random.IntN(categories)
	switch w.random.IntN(7) {
	case 0:
		return &rule{fmt.Sprintf("k != %d", k), false, func(_ *state, r *row, _ *who) truth { return truthOf(r.K != k) }}
	case 1:
		return &rule{"owner == auth.userId", false, func(_ *state, r *row, c *who) truth { return owns(r, c) }}
	case 2:
		return &rule{"until > now", true, func(s *state, r *row, _ *who) truth { return truthOf(r.Until != nil && r.Until.After(s.at)) }}
	case 3:
		if p := e.parent; p != nil {
			return &rule{"parent.flag == true", false, func(s *state, r *row, _ *who) truth {
				return truthOf(r.Parent != nil && s.rows[p][*r.Parent].Flag)
			}}
		}
	case 4:
		other := w.entities[w.random.IntN(len(w.entities))]
		if !other.tenant || e.tenant {
			return &rule{"exists(" + other.name + " where part == outer.part and k == outer.k and owner == auth.userId)", false,
				func(s *state, r *row, c *who) truth {
					return existsIn(s, other, c, func(o *row) truth { return min(truthOf(o.K == r.K), owns(o, c)) })
				}}
		}
	case 5:
		for _, child := range w.entities {
			if child.parent == e && (!child.tenant || e.tenant) {
				return &rule{"exists(" + child.name + " where parent == outer.id and flag == true)", false,
					func(s *state, r *row, c *who) truth {
						return existsIn(s, child, c, func(o *row) truth { return truthOf(o.Parent != nil && *o.Parent == r.ID && o.Flag) })
					}}
			}
		}
	}
	return &rule{"flag == true", false, func(_ *state, r *row, _ *who) truth { return truthOf(r.Flag) }}
}

func owns(r *row, c *who) truth {
	if c.kind != sessions {
		return unknown
	}
	return truthOf(r.Owner != nil && *r.Owner == c.user)
}

func existsIn(s *state, e *entity, c *who, holds func(*row) truth) truth {
	for _, r := range s.rows[e] {
		if (!e.tenant || r.tenant == c.tenant) && holds(r) == yes {
			return yes
		}
	}
	return no
}

// schema returns the text of the schema. watched is the value of live: of its routes.
func (w *world) schema(watched string) string {
	var b strings.Builder
	b.WriteString("auth {\n  session cookie { absolute: 12h }\n  roles: [boss]\n")
	if w.tenants {
		b.WriteString("  tenant: Org\n}\nentity Org { id: id }\n")
	} else {
		b.WriteString("}\n")
	}
	const boss = "  @@allow all to session when auth.role == \"boss\"\n"
	b.WriteString("entity Version {\n  id: id\n  part: int @unique\n  n: int = 0\n" + boss + "}\n")
	b.WriteString("entity Log {\n  id: id\n  name: string(1..40) @unique\n  part: int\n  n: int\n  tenant: string(0..8)\n  done: text\n" + boss + "}\n")
	for _, e := range w.entities {
		fmt.Fprintf(&b, "entity %s {\n  id: id\n  name: string(1..40) @unique\n  part: int\n  rev: int\n  k: int @index\n  rank: int\n  flag: bool\n  owner: string(1..20)?\n  until: time?\n", e.name)
		if e.tenant {
			b.WriteString(tenantField)
		}
		if e.parent != nil {
			how := "clear"
			if e.cascade {
				how = "cascade"
			}
			fmt.Fprintf(&b, "  parent: %s? @onDelete(%s)\n", e.parent.name, how)
		}
		b.WriteString(boss)
		for _, kind := range []string{sessions, anonymous} {
			if r := e.allow[kind]; r != nil {
				fmt.Fprintf(&b, "  @@allow read to %s when %s\n", kind, r.text)
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(e.deny)) {
			switch kind {
			case sessions:
				fmt.Fprintf(&b, "  @@deny read to session when auth.role != \"boss\" and (%s)\n", e.deny[kind].text)
			case anonymous:
				fmt.Fprintf(&b, "  @@deny read to anonymous when %s\n", e.deny[kind].text)
			default:
				fmt.Fprintf(&b, "  @@deny read to apiKey(%s) when %s\n", kind, e.deny[kind].text)
			}
		}
		b.WriteString("}\n")
	}
	b.WriteString("apiKeys {\n  scopes: {\n    writer: @system(\"writer\") {\n      @grant read, write, delete on Version, Log")
	for _, e := range w.entities {
		b.WriteString(", " + e.name)
	}
	b.WriteString("\n    }\n")
	for _, scope := range w.scopes {
		fmt.Fprintf(&b, "    , %s: @system(%q) {\n", scope, scope)
		for _, e := range w.entities {
			if r := e.allow[scope]; r != nil {
				fmt.Fprintf(&b, "      @grant read on %s where %s\n", e.name, r.text)
			}
		}
		b.WriteString("    }\n")
	}
	b.WriteString("  }\n}\n")
	fmt.Fprintf(&b, `routes("/v1", auth: anyOf(session, apiKey(writer, %s)), rateLimit: none) {
  GET /look -> look (live: %[2]s)
  GET /version/:part -> version (live: %[2]s)
  POST /write -> write
}
routes("/open", auth: none, rateLimit: none) {
  GET /look -> look (live: %[2]s)
}
`, strings.Join(w.scopes, ", "), watched)
	return b.String()
}

// handlers is the source of the handlers of all worlds.
const handlers = `
import { insert, ok, query, remove, update, type RouteRequest } from "@runner/sdk";

const rows: any = query;
const shown = ["name", "part", "rev", "k", "rank", "flag"];

const named = (entity: string, name: string) => rows(entity).where("name", "=", name);

export async function look(req: RouteRequest) {
  const { e, how, part, k, name, parent, other } = req.query;
  const fields = parent ? [...shown, "parent"] : shown;
  const all = rows(e).select(...fields);
  switch (how) {
    case "all":
      return ok(await all.orderBy("name").limit(500));
    case "category":
      return ok(await all.where("k", "=", Number(k)).orderBy("name").limit(500));
    case "top":
      return ok(await all.where("part", "=", Number(part)).orderBy("rank", "desc").limit(3));
    case "named":
      return ok(await all.where("name", "=", name).first());
    case "must":
      return ok(await all.where("name", "=", name).firstOrFail());
    case "count":
      return ok(await rows(e).where("part", "=", Number(part)).count());
    case "parents":
      return ok(await all.include("parent", ["name", "rev"]).orderBy("name").limit(500));
    default: // of two entities
      return ok([...(await all.orderBy("name").limit(500)), ...(await rows(other).select(...shown).orderBy("name").limit(500))]);
  }
}

export async function version(req: RouteRequest) {
  return ok((await rows("Version").where("part", "=", Number(req.params.part)).firstOrFail()).n);
}

/** Writes rows of a part, and what it has written, as the next version of the part. */
export async function write(req: RouteRequest) {
  const { part, tenant, changes } = req.body<any>();
  const version = await rows("Version").where("part", "=", part).first();
  const n = (version?.n ?? 0) + 1;
  if (version) await (update as any)("Version", { n }).where("id", "=", version.id);
  else await (insert as any)("Version", { part, n });
  const done: any[] = [];
  for (const { e, name, parent, set } of changes) {
    const old = await named(e, name).first();
    if (!set) {
      if (old) {
        await (remove as any)(e).where("id", "=", old.id);
        done.push({ e, id: old.id });
      }
      continue;
    }
    const row = { name, part, ...set, rev: n };
    if (parent) row.parent = (await named(parent.e, parent.name).first())?.id ?? null;
    let id = old?.id;
    if (old) await (update as any)(e, row).where("id", "=", id);
    else id = (await (insert as any)(e, row)).id;
    done.push({ e, id, row });
  }
  await (insert as any)("Log", { name: part + "-" + n, part, n, tenant, done: JSON.stringify(done) });
  return ok(n);
}
`

// change is a change of one row, by its name, in a write. Without Set the row is removed.
type change struct {
	Entity string         `json:"e"`
	Name   string         `json:"name"`
	Parent *named         `json:"parent,omitempty"`
	Set    map[string]any `json:"set,omitempty"`
}

type named struct {
	Entity string `json:"e"`
	Name   string `json:"name"`
}

// rowName is the name of one of the rows that writers write.
func rowName(e *entity, part int, tenant string, n int) string {
	if !e.tenant {
		tenant = "-"
	}
	return fmt.Sprintf("%d.%s.%s.%d", part, e.name, tenant, n)
}

// changes returns the changes of a random write.
func (w *world) changes(random *rand.Rand, part int, tenant string) (all []change) {
	for range 1 + random.IntN(3) {
		e := w.entities[random.IntN(len(w.entities))]
		c := change{Entity: e.name, Name: rowName(e, part, tenant, random.IntN(names))}
		if random.IntN(5) > 0 {
			c.Set = map[string]any{
				"k": random.IntN(categories), "rank": random.IntN(1 << 40), "flag": random.IntN(2) == 0,
				"owner": nil, "until": nil,
			}
			if random.IntN(4) > 0 {
				c.Set["owner"] = userName(random.IntN(users))
			}
			if random.IntN(3) > 0 {
				c.Set["until"] = time.Now().Add(time.Duration(random.Int64N(int64(maxUntil)))).UTC().Format("2006-01-02T15:04:05.000Z")
			}
			if e.parent != nil {
				c.Parent = &named{e.parent.name, rowName(e.parent, part, tenant, random.IntN(names))}
			}
		}
		all = append(all, c)
	}
	return all
}

func userName(n int) string { return fmt.Sprint("user", n) }

// done is a change that a write has made.
type done struct {
	Entity string `json:"e"`
	ID     string `json:"id"`
	Row    *row   `json:"row"`
}

// next is the state after a write by a caller of the tenant.
func (w *world) next(s *state, tenant string, all []done) *state {
	s = s.clone()
	for _, d := range all {
		e := w.entities[slices.IndexFunc(w.entities, func(e *entity) bool { return e.name == d.Entity })]
		if d.Row == nil {
			w.remove(s, e, d.ID)
			continue
		}
		r := *d.Row
		r.ID, r.tenant = d.ID, tenant
		if s.rows[e] == nil {
			s.rows[e] = map[string]*row{}
		}
		s.rows[e][d.ID] = &r
	}
	return s
}

func (w *world) remove(s *state, e *entity, id string) {
	delete(s.rows[e], id)
	for _, child := range w.entities {
		if child.parent != e {
			continue
		}
		for _, r := range s.rows[child] {
			if r.Parent == nil || *r.Parent != id {
				continue
			}
			if child.cascade {
				w.remove(s, child, r.ID)
				continue
			}
			cleared := *r
			cleared.Parent = nil
			s.rows[child][r.ID] = &cleared
		}
	}
}

// reads reports whether some rule may allow c to read rows of e, and readsRow whether c may read r.
func (e *entity) reads(c *who) bool {
	return c.kind == sessions || c.kind == "writer" || e.allow[c.kind] != nil // there is a rule for a boss
}

func (e *entity) readsRow(s *state, r *row, c *who) bool {
	if e.tenant && r.tenant != c.tenant {
		return false
	}
	if c.boss || c.kind == "writer" {
		return true
	}
	if deny := e.deny[c.kind]; deny != nil && deny.holds(s, r, c) != no {
		return false
	}
	allow := e.allow[c.kind]
	return allow != nil && allow.holds(s, r, c) == yes
}

// timed reports whether what c sees of e depends on the time.
func (e *entity) timed(c *who) bool {
	for _, r := range []*rule{e.allow[c.kind], e.deny[c.kind]} {
		if r != nil && r.timed {
			return true
		}
	}
	return false
}

// ask is the question of a watch or a request: which rows, and in what form.
type ask struct {
	e     *entity
	other *entity // of "both"
	how   string
	part  int
	k     int
	name  string
}

// ask returns a random question of a caller.
func (w *world) ask(random *rand.Rand, c *who) *ask {
	e := w.entities[random.IntN(len(w.entities))]
	hows := []string{"all", "category", "top", "named", "must", "count", "both"}
	if e.parent != nil {
		hows = append(hows, "parents", "parents")
	}
	a := &ask{e: e, how: hows[random.IntN(len(hows))], part: random.IntN(w.parts), k: random.IntN(categories)}
	a.name = rowName(e, a.part, cmp.Or(c.tenant, "-"), random.IntN(names))
	if a.how == "both" {
		a.other = w.entities[random.IntN(len(w.entities))]
	}
	return a
}

func (a *ask) path(c *who) string {
	prefix := "/v1"
	if c.kind == anonymous {
		prefix = "/open"
	}
	path := fmt.Sprintf("%s/look?e=%s&how=%s&part=%d&k=%d&name=%s", prefix, a.e.name, a.how, a.part, a.k, a.name)
	if a.e.parent != nil {
		path += "&parent=1"
	}
	if a.other != nil {
		path += "&other=" + a.other.name
	}
	return path
}

// refused reports whether c gets 403, whatever the rows are.
func (a *ask) refused(c *who) bool {
	for _, e := range a.sees() {
		if !e.reads(c) || e.tenant && c.tenant == "" {
			return true
		}
	}
	return false
}

// sees returns the entities whose rows are in the answer.
func (a *ask) sees() []*entity {
	all := []*entity{a.e}
	if a.other != nil {
		all = append(all, a.other)
	}
	if a.how == "parents" {
		all = append(all, a.e.parent)
	}
	return all
}

func (a *ask) timed(c *who) bool {
	return slices.ContainsFunc(a.sees(), func(e *entity) bool { return e.timed(c) })
}

// answer returns the share of a part in the answer to c: a JSON text for each row, or another text. If missing is true, the
// answer is 404.
func (a *ask) answer(s *state, c *who, part int) (text string, missing bool) {
	if a.ofPart() && part != a.part {
		return "", false
	}
	visible := a.rows(a.e, s, c)
	switch a.how {
	case "category":
		visible = slices.DeleteFunc(visible, func(r *row) bool { return r.K != a.k })
	case "top":
		slices.SortFunc(visible, func(a, b *row) int { return b.Rank - a.Rank })
		visible = visible[:min(3, len(visible))]
	case "named", "must":
		visible = slices.DeleteFunc(visible, func(r *row) bool { return r.Name != a.name })
		if len(visible) == 0 {
			return "null", a.how == "must"
		}
	case "count":
		return fmt.Sprint(len(visible)), false
	}
	var b strings.Builder
	for _, r := range visible {
		var parent any
		if r.Parent != nil {
			parent = *r.Parent
			if a.how == "parents" {
				parent = nil
				if p := s.rows[a.e.parent][*r.Parent]; a.e.parent.readsRow(s, p, c) {
					parent = map[string]any{"name": p.Name, "rev": p.Rev}
				}
			}
		}
		b.WriteString(shownRow{r.Name, r.Part, r.Rev, r.K, r.Rank, r.Flag, parent}.text())
	}
	if a.how == "both" {
		for _, r := range a.rows(a.other, s, c) {
			b.WriteString(shownRow{r.Name, r.Part, r.Rev, r.K, r.Rank, r.Flag, nil}.text())
		}
	}
	return b.String(), false
}

// rows returns the rows of e that c may read, ordered by name.
func (a *ask) rows(e *entity, s *state, c *who) (visible []*row) {
	for _, r := range s.rows[e] {
		if e.readsRow(s, r, c) {
			visible = append(visible, r)
		}
	}
	slices.SortFunc(visible, func(a, b *row) int { return strings.Compare(a.Name, b.Name) })
	return visible
}

// ofPart reports whether the answer has only rows of the part of a.
func (a *ask) ofPart() bool { return slices.Contains([]string{"top", "named", "must", "count"}, a.how) }

// shownRow is a row in an answer.
type shownRow struct {
	Name   string `json:"name"`
	Part   int    `json:"part"`
	Rev    int    `json:"rev"`
	K      int    `json:"k"`
	Rank   int    `json:"rank"`
	Flag   bool   `json:"flag"`
	Parent any    `json:"parent"`
}

func (r shownRow) text() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(text) + "\n"
}

// divide divides the body of an answer into the shares of parts, in the form that answer returns.
func (a *ask) divide(body string, parts int) ([]string, error) {
	shares := make([]string, parts)
	if a.how == "count" || body == "null" {
		shares[a.part] = body
		return shares, nil
	}
	var all []shownRow
	if a.how == "named" || a.how == "must" {
		body = "[" + body + "]"
	}
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		return nil, err
	}
	for _, r := range all {
		shares[r.Part] += r.text()
	}
	return shares, nil
}
