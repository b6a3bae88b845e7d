package deploy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/tree"
	"runner.example/node/admin"
	"runner.example/node/app"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/schema"
	"runner.example/state/store"
)

// Upload is the bundle of an app directory as a node gets it: the files of its release, with a signature. It
// does not change.
type Upload struct {
	admin.ReleaseSources
	contents  []release.FileData
	signature *release.Signature // nil: it is not signed
	// Check compiles the modules, and returns what an activation would refuse. A release that a node
	// serves needs no check: the node has compiled it.
	Check func(ctx context.Context) error
	// withoutDebug is the upload without debug files, for nodes whose version does not know them; nil: it
	// has no debug files.
	withoutDebug *Upload
	// unusable are warnings about files that are not sent.
	unusable diag.List
	// Draws warns about random values that the modules draw before their first request.
	Draws func(ctx context.Context) (diag.List, error)
}

// Read reads the schema and the modules of an app, checks the schema, and signs the release; nil:
// without a key it is not signed. If the schema is not valid, it also checks the modules: the error has
// all errors.
func Read(ctx context.Context, a *app.App, key ed25519.PrivateKey) (*Upload, error) {
	s, sources, invalid := a.Compile()
	modules, broken := runtime.ReadModules(a.Dir)
	bundle := &runtime.Bundle{Schema: cmp.Or(s, &schema.Schema{}), Sources: sources, Modules: modules}
	omitted, unread := a.ReadTreesWarned(bundle)
	broken = errors.Join(broken, unread)
	check := func(ctx context.Context) error {
		_, err := runtime.CheckModules(ctx, a.ToolOptions(), bundle)
		return bundle.Explain(err)
	}
	if invalid != nil && broken == nil {
		broken = check(ctx)
	}
	if err := errors.Join(invalid, broken); err != nil {
		return nil, err
	}
	name, err := a.Name(s)
	if err != nil {
		return nil, err
	}
	drawn := func(ctx context.Context) (diag.List, error) {
		return runtime.FindDraws(ctx, a.SandboxOptions(""), bundle)
	}
	describe := func(files []release.FileData) *Upload {
		m := release.Describe(name, files)
		u := &Upload{contents: files, Check: check, Draws: drawn}
		u.ID, u.Manifest, u.Sources, u.Listings = m.ID(), m, sources, map[string][]tree.File{}
		for _, f := range files {
			if f.Tree != nil {
				u.Listings[f.Name] = f.Tree.List()
			}
		}
		if key != nil {
			u.signature = new(release.Sign(m, key))
		}
		return u
	}
	files := app.Files(bundle)
	u := describe(files)
	isDebug := func(f release.FileData) bool { return release.IsDebug(f.Name) }
	if plain := slices.DeleteFunc(slices.Clone(files), isDebug); len(plain) < len(files) {
		u.withoutDebug = describe(plain)
	}
	u.unusable = omitted
	for _, f := range modules {
		if f.DebugErr != nil {
			u.unusable.Warnf("", diag.Span{File: release.DebugOf(f.Name)}, "debug information %v; it is not sent, and failures of the module's handlers have no lines", f.DebugErr)
		}
	}
	return u, u.Manifest.Check()
}

// Plan is what a deployment does.
type Plan struct {
	Difference
	// Send are the files to send.
	Send []release.File `json:"send"`
	// SignedBy is the public key of the signature to send, or empty. The node may have it already.
	SignedBy string `json:"signedBy,omitempty"`

	unsigned bool  // the node has the release without this signature
	notReady bool  // the node may not serve the active release
	deployed bool  // the active release was activated by a command
	unsafe   error // why the node refuses the release because of its signatures
	refused  error // why the node would not activate it
}

// PlanOptions are what a deployment asks for.
type PlanOptions struct {
	// All sends also the files that the node has.
	All bool
	admin.Allowed
}

// Plan compares the release with the active one of the node, finds the files to send: those that
// the node lacks, or all of them; and asks the node whether it would activate the release. It changes nothing. The
// error is a fault with the code InsufficientRole if the key may not deploy.
func (u *Upload) Plan(ctx context.Context, node *admin.Client, opt PlanOptions) (*Plan, error) {
	list, err := node.Releases(ctx)
	if err != nil {
		return nil, err
	}
	plan := &Plan{}
	if plan.Send, err = u.missing(ctx, node, opt.All); err != nil {
		return nil, err
	}
	status, err := node.Status(ctx)
	if err != nil {
		return nil, err
	}
	plan.notReady, plan.deployed = status.NotReady != "", list.Active.Origin == release.Deploy
	u.planSignature(plan, list)
	if plan.Difference, err = changesTo(ctx, node, list.Active.ID, u.ReleaseSources); err != nil || u.ID == list.Active.ID {
		return plan, err
	}
	return plan, u.check(ctx, node, plan, list, opt.Allowed)
}

// check asks the node whether it would activate the release. The error is not about the release.
func (u *Upload) check(ctx context.Context, node *admin.Client, plan *Plan, list admin.ReleaseList, allowed admin.Allowed) error {
	found, err := node.CheckRelease(ctx, admin.CheckRelease{Manifest: u.Manifest, Sources: u.Sources, Allowed: allowed})
	switch fault.CodeOf(err) {
	case "":
		plan.Excerpt, plan.sources = found.Excerpt, u.Sources
		if isOlder(list, u.ID) {
			plan.Notes = append(plan.Notes, noteOlder)
		}
		return nil
	case fault.NotActivated, fault.Conflict:
		plan.refused = err
		if problems, ok := errors.AsType[*console.Problems](err); ok {
			problems.Sources = u.Sources
			plan.Excerpt, plan.sources = problems.Excerpt(), u.Sources
		}
		return nil
	case fault.NotFound: // the node is older than this command
		plan.Notes = append(plan.Notes, "the settings of the node were not compared: it runs an older version")
		return plan.compareRows(ctx, node, list, u.ReleaseSources)
	case fault.TooLarge:
		plan.Notes = append(plan.Notes, "the settings, rows and keys of the node were not compared: "+fault.Of(err).Detail)
		return nil
	}
	return err
}

// missing returns the files and the contents of trees that the node lacks, or all of them. Each content is there once.
func (u *Upload) missing(ctx context.Context, node *admin.Client, all bool) (send []release.File, err error) {
	missing, err := node.MissingFiles(ctx, u.Manifest)
	if err != nil {
		return nil, err
	}
	if all {
		missing = u.Files
	}
	seen := map[store.Digest]bool{}
	addNew := func(to []release.File, f release.File) []release.File {
		if seen[f.Digest] {
			return to
		}
		seen[f.Digest] = true
		return append(to, f)
	}
	send = []release.File{}
	for _, f := range missing {
		send = addNew(send, f)
	}
	var contents []release.File
	for _, f := range u.Files {
		for _, listed := range u.Listings[f.Name] {
			contents = addNew(contents, release.ContentOf(f.Name, listed))
		}
	}
	if !all {
		contents, err = node.MissingBlobs(ctx, contents)
	}
	return append(send, contents...), err
}

// planSignature adds to the plan what the node will do with the signature, or without one.
func (u *Upload) planSignature(plan *Plan, list admin.ReleaseList) {
	there := release.Release{Manifest: u.Manifest}
	if i := slices.IndexFunc(list.Releases, func(r release.Release) bool { return r.ID == u.ID }); i >= 0 {
		there.Signatures = list.Releases[i].Signatures
	}
	_, plan.unsafe = list.TrustedKeys.Add(there, u.signature)
	if u.signature != nil {
		plan.SignedBy = u.signature.Key
		plan.unsigned = !slices.ContainsFunc(there.Signatures, func(s release.Signature) bool {
			return s.Key == u.signature.Key && bytes.Equal(s.Value, u.signature.Value)
		})
	}
}

// isActive reports that the release is active already by a command, not as the app directory, and
// that the node serves it and has all of its files and the signature.
func (p *Plan) isActive() bool {
	return p.Before == p.After && p.deployed && len(p.Send) == 0 && !p.unsigned && !p.notReady
}

// Refused returns the errors with which the node would refuse the release, or nil.
func (p *Plan) Refused() error {
	if p.refused != nil {
		return errors.Join(p.unsafe, p.refused)
	}
	return errors.Join(p.unsafe, p.Difference.Refused())
}

// Send sends the files of the plan and adds the release with its signature. The release is not
// activated. The bytes that are sent are written to progress too.
func (u *Upload) Send(ctx context.Context, node *admin.Client, plan *Plan, progress io.Writer) error {
	if err := u.sendFiles(ctx, node, plan.Send, progress); err != nil {
		return err
	}
	request := admin.AddRelease{Manifest: u.Manifest, Signature: u.signature}
	_, err := node.AddRelease(ctx, request)
	if fault.CodeOf(err) != fault.Conflict {
		return err
	}
	// The node has deleted files that were sent before, because no release named them: they are sent again.
	missing, err := node.MissingFiles(ctx, u.Manifest)
	if err == nil {
		err = u.sendFiles(ctx, node, missing, io.Discard)
	}
	if err == nil {
		_, err = node.AddRelease(ctx, request)
	}
	return err
}

// sendFiles sends the files, and small contents of trees together.
func (u *Upload) sendFiles(ctx context.Context, node *admin.Client, files []release.File, progress io.Writer) error {
	read := u.readers()
	var batch admin.Batch
	flush := func() error {
		if batch.Empty() {
			return nil
		}
		err := node.PutBatch(ctx, batch)
		batch = admin.Batch{}
		return err
	}
	for _, f := range files {
		content := read[f.Digest]
		if content == nil {
			return fault.New(fault.Internal, "the node asks for %s, which the release does not have", f.Name)
		}
		data, err := content()
		if err != nil {
			return fault.New(fault.Invalid, "%v while the release was sent: run the command again", err)
		}
		_, isFile := slices.BinarySearchFunc(u.Files, f.Name, func(f release.File, name string) int { return cmp.Compare(f.Name, name) })
		if isFile || len(data) > admin.MaxBatchedBytes {
			if err := node.PutFile(ctx, f, io.TeeReader(bytes.NewReader(data), progress)); err != nil {
				return err
			}
			continue
		}
		if !batch.Add(data) {
			if err := flush(); err != nil {
				return err
			}
			batch.Add(data)
		}
		_, _ = progress.Write(data)
	}
	return flush()
}

// readers returns functions that read the contents of the release, by their digests.
func (u *Upload) readers() map[store.Digest]func() ([]byte, error) {
	read := map[store.Digest]func() ([]byte, error){}
	for _, c := range u.contents {
		read[sha256.Sum256(c.Data)] = func() ([]byte, error) { return c.Data, nil }
		if c.Tree == nil {
			continue
		}
		for _, f := range c.Tree.List() {
			if read[f.SHA256] == nil {
				read[f.SHA256] = func() ([]byte, error) { return c.Tree.ReadFile(f.Path) }
			}
		}
	}
	return read
}

// Activate activates the release of the plan. The error is a fault with the code Conflict if another
// release is active than the one that the plan was made for.
func (p *Plan) Activate(ctx context.Context, node *admin.Client, allowed admin.Allowed) error {
	return node.ActivateRelease(ctx, admin.ActivateRelease{ID: p.After, Expected: &p.Before, Allowed: allowed})
}

// Stored compares two stored releases of the node. Without names these are the previous release and
// the active one, with one name the active one and that one. A name is an id, or an unambiguous
// beginning of one. A fault with the code NotFound says that there is no such release.
func Stored(ctx context.Context, node *admin.Client, names ...string) (d Difference, err error) {
	list, err := node.Releases(ctx)
	if err != nil {
		return d, err
	}
	ids := []string{list.Active.Previous, list.Active.ID}
	for i, name := range names {
		if ids[i], err = find(list, name); err != nil {
			return d, err
		}
	}
	if len(names) == 1 {
		ids[0], ids[1] = list.Active.ID, ids[0]
	}
	if ids[1] == "" {
		return d, fault.New(fault.NotFound, "no release is active").WithHint("runner deploy activates one")
	}
	after, err := node.Release(ctx, ids[1])
	if err != nil {
		return d, err
	}
	return differenceTo(ctx, node, list, ids[0], after)
}

// find returns the id of the release that a name means.
func find(list admin.ReleaseList, name string) (id string, err error) {
	for _, r := range list.Releases {
		switch {
		case len(name) < len("rel_")+1 || len(r.ID) < len(name) || r.ID[:len(name)] != name:
		case id != "":
			return "", fault.New(fault.Invalid, "%s and %s begin with %s: name more characters", id, r.ID, name)
		default:
			id = r.ID
		}
	}
	switch {
	case id != "":
	case !strings.HasPrefix(name, "rel_"):
		return "", fault.New(fault.Invalid, "%.40q is not the id of a release: runner releases lists them", name)
	default:
		return "", release.Unknown(console.Harmless(name))
	}
	return id, nil
}

// differenceTo compares a stored release with another one, and that one with the rows and keys of the
// node if it is not active.
func differenceTo(ctx context.Context, node *admin.Client, list admin.ReleaseList, from string, after admin.ReleaseSources) (Difference, error) {
	d, err := changesTo(ctx, node, from, after)
	if err != nil || after.ID == list.Active.ID {
		return d, err
	}
	return d, d.compareRows(ctx, node, list, after)
}

// changesTo compares a stored release with another one.
func changesTo(ctx context.Context, node *admin.Client, from string, after admin.ReleaseSources) (Difference, error) {
	before := admin.ReleaseSources{}
	var notes []string
	if from != "" && from != after.ID {
		var err error
		before, err = node.Release(ctx, from)
		if fault.CodeOf(err) == fault.Unavailable && ctx.Err() == nil {
			notes = append(notes, fmt.Sprintf("release %s cannot be read, so all of %s is shown as new: %s", from, after.ID, fault.Of(err).Detail))
		} else if err != nil {
			return Difference{}, err
		}
	}
	d := Difference{Before: from, After: after.ID, Changes: []Change{}, Excerpt: diag.List{}.Excerpt()}
	if from != after.ID {
		unread, err := readListings(ctx, node, &before, &after)
		if err != nil {
			return d, err
		}
		notes = append(notes, unread...)
		if d, err = Compare(before, after); err != nil {
			return d, err
		}
		d.Before = from
	}
	d.Notes = append(d.Notes, notes...)
	return d, nil
}

// readListings reads the listings that differ in two releases. Notes name those that the node cannot read.
func readListings(ctx context.Context, node *admin.Client, before, after *admin.ReleaseSources) (notes []string, err error) {
	for _, old := range before.Files {
		at := slices.IndexFunc(after.Files, func(f release.File) bool { return f.Name == old.Name && f.Digest != old.Digest })
		if at < 0 || !release.IsTree(old.Name) {
			continue
		}
		for _, r := range []*admin.ReleaseSources{before, after} {
			if r.Listings[old.Name] != nil { // one that is not sent yet
				continue
			}
			files, err := node.Listing(ctx, r.ID, old.Name)
			if fault.CodeOf(err) == fault.Unavailable && ctx.Err() == nil {
				notes = append(notes, fmt.Sprintf("the files of %s were not compared: %s", old.Name, fault.Of(err).Detail))
				continue
			} else if err != nil {
				return nil, err
			}
			if r.Listings == nil {
				r.Listings = map[string][]tree.File{}
			}
			r.Listings[old.Name] = files
		}
	}
	return notes, nil
}

const noteOlder = "rows and keys were not compared: the activation of an older release keeps what newer ones declare"

// compareRows adds what an activation would refuse or warn about.
func (d *Difference) compareRows(ctx context.Context, node *admin.Client, list admin.ReleaseList, after admin.ReleaseSources) error {
	if isOlder(list, after.ID) {
		d.Notes = append(d.Notes, noteOlder)
		return nil
	}
	compared, err := node.CompareSchema(ctx, admin.CompareSchema{Sources: after.Sources})
	switch fault.CodeOf(err) {
	case fault.InsufficientRole, fault.TooLarge:
		d.Notes = append(d.Notes, "rows and keys were not compared: "+fault.Of(err).Detail)
		return nil
	}
	d.Excerpt, d.sources = compared.Excerpt, after.Sources
	return err
}

// isOlder reports that a release was first added before the active one was.
func isOlder(list admin.ReleaseList, id string) bool {
	at := func(id string) int {
		return slices.IndexFunc(list.Releases, func(r release.Release) bool { return r.ID == id })
	}
	i, active := at(id), at(list.Active.ID)
	return i >= 0 && active >= 0 && list.Releases[i].First.Before(list.Releases[active].First.Time)
}
