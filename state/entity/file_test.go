package entity_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/entity/catalog"
	"runner.example/state/entity/layout"
	"runner.example/state/store"
)

// withFiles is a fixture whose operations may write the files that it has uploaded, and note those that they return.
type withFiles struct {
	*fixture
	ids   ids.Sequence
	known map[string]schema.File
	saw   []schema.File
	// owners are those of saw.
	owners []entity.FileOwner
}

func newWithFiles(t testing.TB, text string) *withFiles {
	t.Helper()
	return &withFiles{fixture: newFixture(t, text), known: map[string]schema.File{}}
}

// upload stores contents without a pin and returns the JSON with which a row gets the file.
func (h *withFiles) upload(name, media, content string) string {
	h.t.Helper()
	d, err := h.store.PutBlob(context.Background(), strings.NewReader(content))
	if err != nil {
		h.t.Fatal(err)
	}
	id, err := h.ids.Next(time.Now())
	if err != nil {
		h.t.Fatal(err)
	}
	h.known[id] = schema.File{ID: id, Name: name, Type: media, Size: int64(len(content)), SHA256: d}
	return fmt.Sprintf(`{"id":%q,"name":"ignored"}`, id)
}

func (h *withFiles) do(who *caller.Caller, op, args string) (string, error) {
	h.t.Helper()
	var out entity.Result
	err := h.in(who, func(a *entity.Access) error {
		h.saw, h.owners = nil, nil
		a.FileOf = func(id string) (schema.File, bool) { f, ok := h.known[id]; return f, ok }
		a.SawFile = func(f schema.File, of entity.FileOwner) { h.saw, h.owners = append(h.saw, f), append(h.owners, of) }
		return a.Do(op, []byte(args), &out)
	})
	return string(out.JSON), err
}

func (h *withFiles) must(who *caller.Caller, op, args string) string {
	h.t.Helper()
	out, err := h.do(who, op, args)
	if err != nil {
		h.t.Fatalf("%s %s: %v", op, args, err)
	}
	return out
}

// refuses runs an operation that must fail with the code and the text.
func (h *withFiles) refuses(who *caller.Caller, code fault.Code, text, op, args string) {
	h.t.Helper()
	if out, err := h.do(who, op, args); fault.CodeOf(err) != code || !strings.Contains(fault.Of(err).Detail, text) {
		h.t.Errorf("%s %s: %s %v; want %s: %s", op, args, out, err, code, text)
	}
}

// references returns the contents that rows name, once per reference, in order.
func references(t testing.TB, st *store.Store) (contents []string) {
	t.Helper()
	err := st.View(context.Background(), func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte(store.BlobPrefix), nil, false) {
			if err != nil {
				return err
			}
			d, owner, ok := store.CutBlobReference(item.Key)
			if _, _, _, isRow := layout.CutFileOwner(owner); !ok || !isRow {
				return fmt.Errorf("the key %q", item.Key)
			}
			r, err := st.Blob(context.Background(), d)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(r)
			if err := r.Close(); err != nil {
				return err
			}
			if err != nil {
				return err
			}
			contents = append(contents, string(text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(contents)
	return contents
}

func (h *withFiles) wantReferences(when string, want ...string) {
	h.t.Helper()
	if got := references(h.t, h.store); !slices.Equal(got, want) {
		h.t.Errorf("%s: rows name %q, want %q", when, got, want)
	}
}

const posts = `
auth { session cookie { idle: 30m } tenant: Org }
entity Org { id: id @@allow read to session }
entity Album {
  id: id
  org: Org @tenant
  name: string
  cover: file(10b)?
  @@allow all to session
}
entity Scan {
  id: id
  page: file
  @@allow all to session
}
entity Post {
  id: id
  org: Org @tenant
  album: Album? @onDelete(cascade)
  link: Album? @onDelete(clear)
  title: string = "t"
  photo: file(10b, "image/*")?
  scan: file? @hidden
  @@allow read, insert, delete to session
  @@allow update to session when new.photo == null or new.photo.size != 7
}
`

func rowID(t *testing.T, answer string) string {
	t.Helper()
	_, rest, ok := strings.Cut(answer, `"id":"`)
	if !ok {
		t.Fatal(answer)
	}
	return rest[:26]
}

func TestARowNamesTheContentsOfItsFiles(t *testing.T) {
	h := newWithFiles(t, posts)
	h.must(operator, "insert", `{"into":"Org","values":{}}`)
	who := memberOf("o1")
	photo := h.upload("a.png", "image/png", "bytes")
	answer := h.must(who, "insert", `{"into":"Post","values":{"photo":`+photo+`}}`)
	if want := `"photo":{"id":"`; !strings.Contains(answer, want) || !strings.Contains(answer, `"name":"a.png","type":"image/png","size":5,"sha256":"`) {
		t.Errorf("the row is %s", answer)
	}
	if len(h.saw) != 1 || h.saw[0] != h.known[h.saw[0].ID] {
		t.Errorf("returned are %v", h.saw)
	}
	h.wantReferences("after the insert", "bytes")
	id := rowID(t, answer)
	second := rowID(t, h.must(who, "insert", `{"into":"Post","values":{"photo":`+photo+`,"title":"second"}}`))
	h.wantReferences("two rows with one file", "bytes", "bytes")
	h.must(who, "update", `{"in":"Post","set":{"title":"new"},"where":[["id","=","`+id+`"]]}`)
	h.wantReferences("after an update of something else", "bytes", "bytes")
	h.must(who, "update", `{"in":"Post","set":{"photo":`+h.upload("b.gif", "image/gif", "other")+`},"where":[["id","=","`+id+`"]]}`)
	h.wantReferences("after an update", "bytes", "other")
	// A copy of the same bytes under another name changes the row, and not the reference.
	h.must(who, "update", `{"in":"Post","set":{"photo":`+h.upload("c.gif", "image/gif", "other")+`},"where":[["id","=","`+id+`"]]}`)
	if got := h.must(who, "get", `{"from":"Post","id":"`+id+`"}`); !strings.Contains(got, "c.gif") || strings.Contains(got, "scan") {
		t.Errorf("the row is %s", got)
	}
	h.wantReferences("after another name", "bytes", "other")
	h.must(who, "update", `{"in":"Post","set":{"photo":null},"where":[["id","=","`+id+`"]]}`)
	h.wantReferences("without the file", "bytes")
	h.must(who, "delete", `{"from":"Post","where":[["id","=","`+second+`"]]}`)
	h.wantReferences("without the row")
}

func TestDeletedRowsOfOtherEntitiesFreeTheirFiles(t *testing.T) {
	h := newWithFiles(t, posts)
	who := memberOf("o1")
	album := rowID(t, h.must(who, "insert", `{"into":"Album","values":{"name":"a","cover":`+h.upload("c", "text/plain", "cover")+`}}`))
	for i, field := range []string{"album", "link", "album"} {
		h.must(who, "insert", fmt.Sprintf(`{"into":"Post","values":{%q:%q,"photo":%s}}`, field, album, h.upload("p", "image/png", fmt.Sprint(i))))
	}
	h.wantReferences("before", "0", "1", "2", "cover")
	h.must(who, "delete", `{"from":"Album","where":[["id","=","`+album+`"]]}`)
	h.wantReferences("after the cascade", "1")
}

func TestAFileThatTheRequestDoesNotHaveIsRefused(t *testing.T) {
	h := newWithFiles(t, posts)
	who := memberOf("o1")
	known := h.upload("a.png", "image/png", "bytes")
	f := h.known[known[len(`{"id":"`):len(`{"id":"`)+26]]
	whole := fmt.Sprintf(`{"id":"01j9zzzzzzzzzzzzzzzzzzzzza","name":"a","type":"image/png","size":5,"sha256":"%x"}`, f.SHA256)
	for _, file := range []string{`{"id":"01j9zzzzzzzzzzzzzzzzzzzzza"}`, whole, `"` + f.ID + `"`, `{}`, `[]`, `{"id":5}`, `{"name":"` + f.ID + `"}`} {
		for _, who := range []*caller.Caller{who, {Kind: caller.System, Tenant: "o1"}} {
			h.refuses(who, fault.Invalid, "values.photo: must be a file that this request has", "insert", `{"into":"Post","values":{"photo":`+file+`}}`)
		}
	}
	long := h.upload("a.png", "image/png", "eleven byte")
	text := h.upload("a.txt", "text/plain; charset=utf-8", "text")
	h.refuses(who, fault.Invalid, "values.photo: must be at most 10 bytes, and the file has 11", "insert", `{"into":"Post","values":{"photo":`+long+`}}`)
	h.refuses(who, fault.Invalid, "values.photo: must be of type image/*, and the file is of type text/plain", "insert", `{"into":"Post","values":{"photo":`+text+`}}`)
	id := rowID(t, h.must(who, "insert", `{"into":"Post","values":{"photo":`+known+`}}`))
	here := `"where":[["id","=","` + id + `"]]`
	h.refuses(who, fault.Invalid, "set.photo: must be at most 10 bytes", "update", `{"in":"Post","set":{"photo":`+long+`},`+here+`}`)
	h.refuses(who, fault.Denied, "", "update", `{"in":"Post","set":{"photo":`+h.upload("b", "image/png", "7 bytes")+`},`+here+`}`)
	h.refuses(who, fault.Invalid, `no field "scan"`, "insert", `{"into":"Post","values":{"scan":`+known+`}}`)
	h.wantReferences("after refusals", "bytes")
}

func TestAFileIsComparedOnlyWithNull(t *testing.T) {
	h := newWithFiles(t, posts)
	who := memberOf("o1")
	file := h.upload("a.png", "image/png", "bytes")
	h.must(who, "insert", `{"into":"Post","values":[{"title":"with","photo":`+file+`},{"title":"without"}]}`)
	for where, want := range map[string]string{`["photo","=",null]`: "without", `["photo","!=",null]`: "with"} {
		if got := h.must(who, "query", `{"from":"Post","select":["title"],"where":[`+where+`]}`); !strings.Contains(got, `[{"title":"`+want+`"}]`) {
			t.Errorf("%s: %s", where, got)
		}
		if len(h.saw) != 0 {
			t.Errorf("a field that was not selected is returned: %v", h.saw)
		}
	}
	for _, condition := range []string{`["photo","=",` + file + `]`, `["photo","in",[` + file + `]]`, `["photo","contains","a"]`, `["photo",">","a"]`} {
		h.refuses(who, fault.Invalid, "this operator does not apply to a field of type file", "query", `{"from":"Post","where":[`+condition+`]}`)
	}
	h.refuses(who, fault.Invalid, "photo", "query", `{"from":"Post","orderBy":[["photo","asc"]]}`)
	h.refuses(who, fault.Invalid, "groupBy does not apply to a field of type file", "aggregate", `{"from":"Post","groupBy":["photo"]}`)
}

// Another tenant's rows, and those that a rule hides, show none of their files.
func TestFilesOfRowsThatCannotBeReadAreNotSeen(t *testing.T) {
	h := newWithFiles(t, posts)
	h.must(memberOf("o1"), "insert", `{"into":"Post","values":{"photo":`+h.upload("a", "image/png", "secret")+`}}`)
	if got := h.must(memberOf("o2"), "query", `{"from":"Post"}`); !strings.Contains(got, `"rows":[]`) || len(h.saw) != 0 {
		t.Errorf("another tenant has %s, and the files %v", got, h.saw)
	}
	if h.must(memberOf("o1"), "query", `{"from":"Post","limit":1}`); len(h.saw) != 1 {
		t.Errorf("the own tenant has the files %v", h.saw)
	}
}

// A field that the active schema does not declare keeps its files until it is dropped, or its row is deleted.
func TestFilesOfRemovedFieldsAndEntitiesAreFreedWithThem(t *testing.T) {
	h := newWithFiles(t, posts)
	who := memberOf("o1")
	for i := range 3 {
		h.must(who, "insert", fmt.Sprintf(`{"into":"Post","values":{"title":"%d","photo":%s}}`, i, h.upload("p", "image/png", fmt.Sprint("p", i))))
		h.must(who, "insert", fmt.Sprintf(`{"into":"Scan","values":{"page":%s}}`, h.upload("p", "image/png", fmt.Sprint("c", i))))
	}
	without := strings.Replace(posts, `photo: file(10b, "image/*")?`, `photo: file(10b, "image/*")? @removed`, 1)
	without = strings.Replace(without, "@@allow update to session when new.photo == null or new.photo.size != 7", "@@allow update to session", 1)
	h.mustActivate(without)
	h.wantReferences("after the removal", "c0", "c1", "c2", "p0", "p1", "p2")
	h.must(who, "update", `{"in":"Post","set":{"title":"x"},"where":[["title","=","0"]]}`)
	h.wantReferences("after an update of a row that has the field", "c0", "c1", "c2", "p0", "p1", "p2")
	h.must(who, "delete", `{"from":"Post","where":[["title","=","1"]]}`)
	h.wantReferences("after the deletion of a row that has the field", "c0", "c1", "c2", "p0", "p2")
	h.mustRollback(posts)
	h.must(who, "update", `{"in":"Post","set":{"photo":`+h.upload("n", "image/png", "new")+`},"where":[["title","=","x"]]}`)
	h.mustActivate(without)
	h.wantReferences("after a change in the release before", "c0", "c1", "c2", "new", "p2")
	if _, err := h.drop("Post.photo", nil); err != nil {
		t.Fatal(err)
	}
	h.wantReferences("after the field was dropped", "c0", "c1", "c2")
	h.verify()
	h.mustActivate(strings.Replace(without, "entity Scan", "entity Scan @removed", 1))
	h.wantReferences("after the removal of the entity", "c0", "c1", "c2")
	if _, err := h.drop("Scan", nil); err != nil {
		t.Fatal(err)
	}
	h.wantReferences("after the entity was dropped")
}

func TestANarrowerFileTypeIsRefusedIfRowsViolateIt(t *testing.T) {
	h := newWithFiles(t, posts)
	h.must(memberOf("o1"), "insert", `{"into":"Post","values":{"photo":`+h.upload("a", "image/png", "123456")+`}}`)
	narrow := func(to string) string { return strings.Replace(posts, `file(10b, "image/*")`, to, 1) }
	for _, refused := range []string{`file(5b, "image/*")`, `file(10b, "image/gif")`} {
		if err := h.activate(narrow(refused)); err == nil {
			t.Errorf("%s is activated", refused)
		}
	}
	for _, taken := range []string{`file(6b, "image/*")`, `file(6b, "image/png", "image/gif")`, `file(6b)`, `file`} {
		if err := h.activate(narrow(taken)); err != nil {
			t.Errorf("%s: %v", taken, err)
		}
	}
}

func TestReferencesWithoutTheirFilesAreFound(t *testing.T) {
	for name, damage := range map[string]func(tx *store.Tx, key []byte) error{
		"has a file without a reference": func(tx *store.Tx, key []byte) error { return tx.Delete(key) },
		"does not have such a file":      func(tx *store.Tx, key []byte) error { return tx.Set(append(key, 'x'), nil) },
	} {
		h := newWithFiles(t, posts)
		h.must(memberOf("o1"), "insert", `{"into":"Post","values":{"photo":`+h.upload("a", "image/png", "123456")+`}}`)
		var key []byte
		change := func(undo bool) {
			_, err := h.store.Update(context.Background(), func(tx *store.Tx) error {
				for item, err := range tx.Scan([]byte(store.BlobPrefix), nil, false) {
					if err != nil {
						return err
					}
					if key == nil {
						key = slices.Clone(item.Key)
					}
				}
				if !undo {
					return damage(tx, slices.Clone(key))
				}
				if err := tx.Delete(append(slices.Clone(key), 'x')); err != nil {
					return err
				}
				return tx.Set(key, nil)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		change(false)
		if err := catalog.Verify(context.Background(), h.store); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		change(true)
	}
}

// A file is found by its owner in each model that declares the field, for as long as the field has it.
func TestTheOwnerOfAFileFindsIt(t *testing.T) {
	h := newWithFiles(t, posts)
	who := memberOf("o1")
	fileOf := func(owner entity.FileOwner) string {
		t.Helper()
		var f schema.File
		err := h.store.View(context.Background(), func(tx *store.Tx) (err error) {
			var has bool
			if f, has, err = h.model.FileOf(tx, owner); err == nil && has != (f.ID != "") {
				t.Errorf("%v: has it: %t, %v", owner, has, f)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return f.ID
	}
	saw := func(what string) (string, entity.FileOwner) {
		t.Helper()
		if len(h.saw) != 1 {
			t.Fatalf("%s returns the files %v", what, h.saw)
		}
		return h.saw[0].ID, h.owners[0]
	}
	h.must(who, "insert", `{"into":"Post","values":{"title":"a","photo":`+h.upload("a", "image/png", "first")+`}}`)
	first, owner := saw("insert")
	if got := fileOf(owner); got != first {
		t.Errorf("the file of a row that was inserted: %q, want %q", got, first)
	}
	h.must(who, "query", `{"from":"Post","limit":1}`)
	if id, of := saw("query"); id != first || of != owner {
		t.Errorf("query: %v, insert: %v", of, owner)
	}
	h.must(who, "update", `{"in":"Post","set":{"photo":`+h.upload("b", "image/png", "other")+`},"where":[["title","=","a"]]}`)
	next, of := saw("update")
	if got := fileOf(owner); of != owner || got != next || got == first {
		t.Errorf("after an update: %v has %q, want %q", of, got, next)
	}
	for _, wrong := range []entity.FileOwner{
		{}, {owner.Table, owner.Field, ""}, {owner.Table, owner.Field, owner.Tail + "0"}, {owner.Table, owner.Field + 1000, owner.Tail},
		{owner.Table + 1000, owner.Field, owner.Tail}, {0, owner.Field, owner.Tail}, {owner.Table, 0, owner.Tail},
	} {
		if got := fileOf(wrong); got != "" {
			t.Errorf("%v has %q", wrong, got)
		}
	}
	old := h.model
	without := strings.Replace(posts, `photo: file(10b, "image/*")?`, `photo: file(10b, "image/*")? @removed`, 1)
	h.mustActivate(strings.Replace(without, "@@allow update to session when new.photo == null or new.photo.size != 7", "@@allow update to session", 1))
	if got := fileOf(owner); got != "" {
		t.Errorf("a field that the schema has removed: %q", got)
	}
	err := h.store.View(context.Background(), func(tx *store.Tx) error { _, _, err := old.FileOf(tx, owner); return err })
	if !errors.Is(err, entity.ErrOutdated) {
		t.Errorf("the model before: %v", err)
	}
	h.mustRollback(posts)
	if got := fileOf(owner); got != next {
		t.Errorf("after the rollback: %q", got)
	}
	h.must(who, "delete", `{"from":"Post","where":[["title","=","a"]]}`)
	if got := fileOf(owner); got != "" {
		t.Errorf("a deleted row: %q", got)
	}
}
