package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/clock"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/internal/system/process"
	"runner.example/internal/telemetry"
	"runner.example/keystore"
	"runner.example/node/app"
	"runner.example/node/cluster"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/state/audit"
	"runner.example/state/store"
)

// Sources are where an Activator reads what it activates.
type Sources struct {
	// App has the settings at the start. Folder is the bundle of the app directory then; nil: it is
	// read when it is needed.
	App    *app.App
	Folder *runtime.Bundle
	// Read reads the configuration again.
	Read func() (*app.App, error)
	// FromFolder: the app directory is served even if a release was deployed.
	FromFolder bool
	// MayWait: without a schema and without an active release the server waits for one.
	MayWait bool
	// Configure gives the log new options.
	Configure func(telemetry.Options)
	// PreparePeers has each node of the cluster that can be reached call Prepare with a stored release,
	// all at the same time. Its error names the nodes that cannot load the release, and refuses the
	// activation. nil: the server is standalone.
	PreparePeers func(ctx context.Context, id string) error
	// WithMajority returns a context that ends when no majority of the voters could be reached for a while, with
	// an operator's error as its cause; nil: the server is standalone.
	WithMajority func(context.Context) (context.Context, context.CancelFunc)
}

// Activator activates what a server serves: at its start, at a reload, and when an operator
// activates a release. That is the release that was deployed last, or else the app directory,
// which is stored as a release. An activation applies the schema, the modules, the secrets, and
// the settings that need no restart: all of it or nothing. In a cluster it loads what other nodes
// activate. Any goroutine may call its methods.
type Activator struct {
	runtime  *runtime.Runtime
	keys     *keystore.Keystore
	releases *release.Releases
	store    *store.Store
	logger   *slog.Logger
	from     Sources
	remote   *remote // nil: no admin listener
	expiry   *Expiry
	swept    chan struct{} // asks for a sweep
	prepared prepared
	app      atomic.Pointer[app.App] // with the settings in force; changed during an activation

	mu      sync.Mutex              // held during an activation
	digests map[string]store.Digest // of what is served, by name, see digestsOf
	id      string                  // of the release that is served
	active  release.Pointer         // as that release was activated

	published atomic.Pointer[published]
}

// NewActivator returns an activator for the node.
func (n *Node) NewActivator(from Sources) *Activator {
	v := &Activator{
		runtime: n.Runtime, keys: n.Local.Keys, releases: n.Local.Releases, store: n.Local.Store, logger: n.Logger,
		remote: n.remote, expiry: n.Expiry, from: from, swept: make(chan struct{}, 1), prepared: prepared{logger: n.Logger},
	}
	if n.member != nil {
		v.from.PreparePeers, v.from.WithMajority = n.member.PrepareAll, n.member.WithMajority
	}
	v.app.Store(from.App)
	v.published.Store(&published{})
	return v
}

// serverAuthor is the author of changes that the server makes: the user who runs it.
func serverAuthor() release.Author {
	return release.Author{
		Actor:     audit.ActorOf(caller.Caller{Kind: caller.System, UserID: process.User()}),
		RequestID: ids.New(clock.System()),
	}
}

// Start activates what is to be served. If the contents of the active release are damaged, if the
// release to serve lacks a signature that the settings require, or if there is nothing to serve and
// the server may wait, it logs that, and requests are refused as not ready until a release is
// activated. The same holds for every error about a release that another node has activated.
func (v *Activator) Start(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	next, err := v.next(ctx, v.app.Load(), v.from.Folder)
	v.from.Folder = nil
	if err == nil && next.bundle != nil {
		err = v.activate(ctx, next)
	}
	_, untrusted := errors.AsType[*release.UntrustedError](err)
	_, unreadable := errors.AsType[*release.UnreadableError](err)
	switch {
	case err != nil && (untrusted || unreadable || v.follows() || errors.Is(err, store.ErrNotOwner)):
		v.notLoaded(next.id, err)
	case err != nil:
		return err
	case next.bundle == nil:
		v.logger.Info("no release is active: waiting for one")
	}
	return nil
}

// Activate activates a stored release, and logs that. If it is older than the active one, entities
// and fields of rows that only newer releases declare are kept. In a cluster only the owner
// activates, else the error matches store.ErrNotOwner, and the other nodes prepare the release first.
// After an error the previous release stays in force.
func (v *Activator) Activate(ctx context.Context, change release.Activation) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.follows() {
		return store.ErrNotOwner
	}
	bundle, err := v.stored(ctx, v.app.Load(), change.ID)
	if err != nil {
		return err
	}
	if err := v.mayReplace(ctx, bundle, change); err != nil {
		return err
	}
	next := candidate{bundle: bundle, id: change.ID, change: change}
	err = v.store.View(ctx, func(tx *store.Tx) (err error) {
		next.keepRemoved, err = release.IsOlder(tx, change.ID)
		return err
	})
	if err != nil {
		return err
	}
	if v.inCluster() {
		done, err := v.runtime.Prepare(ctx, bundle)
		if err != nil {
			return bundle.Explain(err)
		}
		v.prepared.keep(change.ID, done)
		if err := v.from.PreparePeers(ctx, change.ID); err != nil {
			return err
		}
	}
	before := v.id
	if err := v.activate(ctx, next); err != nil {
		return err
	}
	v.logger.Info("release activated", "release", change.ID, "before", before)
	return nil
}

// mayReplace returns an error if a command must allow the change, and does not: a schema that declares nothing, or a release
// of another app than the active one. A name that neither of them declares is the name of a directory, and may differ.
func (v *Activator) mayReplace(ctx context.Context, next *runtime.Bundle, change release.Activation) error {
	s := next.Schema
	if !change.AllowEmpty && len(s.Routes)+len(s.Functions)+len(s.Jobs)+len(s.Entities)+len(s.Assets) == 0 {
		return fault.New(fault.Invalid, "the schema is empty: it declares no route, function, job, entity or assets").
			WithHint("name the directory of the app, or use --allow-empty (over HTTP allowEmpty: true)")
	}
	if change.ReplaceApp {
		return nil
	}
	var active release.Release
	err := v.store.View(ctx, func(tx *store.Tx) error {
		pointer, err := release.Active(tx)
		if err == nil && pointer.ID != "" {
			active, err = release.Get(tx, pointer.ID)
		}
		return err
	})
	if err != nil || active.ID == "" || active.App == next.App {
		return err
	}
	if served := v.runtime.Schema(); s.App == "" && (served == nil || served.App == "") {
		return nil
	}
	return fault.New(fault.Conflict, "the release is of the app %q, and the node serves the app %q", next.App, active.App).
		WithHint("name the right node, or use --replace-app (over HTTP replaceApp: true)")
}

// Check returns the error with which Activate would refuse a release that this node need not have, as far as it does not
// depend on the modules and the rows. If the error is nil, older reports whether the release is older than the active one.
// In a cluster it checks the settings of this node alone.
func (v *Activator) Check(ctx context.Context, m release.Manifest, sources []diag.Source, change release.Activation) (older bool, err error) {
	rel, err := v.known(ctx, m)
	if err != nil {
		return false, err
	}
	var files []release.FileData
	for _, s := range sources {
		files = append(files, release.FileData{Name: s.Name, Data: s.Text})
	}
	a := v.app.Load()
	if a.Problems.HasErrors() {
		return false, a.InvalidConfiguration()
	}
	bundle, err := a.BundleOf(rel, files)
	if err != nil {
		return false, err
	}
	if err := v.mayReplace(ctx, bundle, change); err != nil {
		return false, err
	}
	if err := runtime.CheckSettings(bundle); err != nil {
		return false, err
	}
	err = v.store.View(ctx, func(tx *store.Tx) (err error) {
		older, err = release.IsOlder(tx, change.ID)
		if fault.CodeOf(err) == fault.NotFound { // it is a new one
			older, err = false, nil
		}
		return err
	})
	return older, err
}

// known returns the stored release with that manifest; one without times if there is none.
func (v *Activator) known(ctx context.Context, m release.Manifest) (rel release.Release, err error) {
	err = v.store.View(ctx, func(tx *store.Tx) (err error) {
		rel, err = release.Get(tx, m.ID())
		return err
	})
	if fault.CodeOf(err) == fault.NotFound {
		return release.Release{ID: m.ID(), Manifest: m}, nil
	}
	return rel, err
}

// activate makes the bundle of the candidate active. With next.follow another node has changed the store already,
// and only this runtime changes. Otherwise it ends when no majority of the voters can be reached: others wait
// for it.
func (v *Activator) activate(ctx context.Context, next candidate) error {
	var err error
	if next.follow {
		err = v.runtime.Follow(ctx, next.bundle)
	} else {
		if v.from.WithMajority != nil {
			var cancel context.CancelFunc
			ctx, cancel = v.from.WithMajority(ctx)
			defer cancel()
		}
		err = v.runtime.Activate(ctx, next.bundle, runtime.Activation{
			Also:        func(tx *store.Tx) (err error) { next.pointer, err = next.movePointer(tx); return err },
			KeepRemoved: next.keepRemoved,
		})
		if cause := context.Cause(ctx); err != nil && cause == cluster.ErrNoMajority {
			return cause
		}
	}
	if err != nil {
		return next.bundle.Explain(err)
	}
	for _, d := range next.bundle.Refused {
		v.logger.Warn("release served with what this version refuses in a new one", "release", next.id, "finding", d.String())
	}
	v.recordActivated(next)
	return nil
}

// recordActivated notes what is served from now on, and asks for a sweep.
func (v *Activator) recordActivated(now candidate) {
	v.digests, v.id, v.active = digestsOf(now.bundle), now.id, now.pointer
	v.prepared.drop(now.id)
	v.publish(now)
	select {
	case v.swept <- struct{}{}:
	default: // one is asked for already
	}
}

// candidate is a bundle that is to become active.
type candidate struct {
	bundle *runtime.Bundle // nil: nothing is to be served
	id     string          // of its release
	// change makes the release the active one. If staged is not nil, the release is added before.
	change release.Activation
	staged *release.Staged
	// keepRemoved keeps entities and fields of rows that the bundle does not declare.
	keepRemoved bool
	// follow: another node has activated it, and change is not used.
	follow bool
	// pointer is the pointer to the release, once it is the active one.
	pointer release.Pointer
	// notServed is the id of the release of the app directory if another one is served instead.
	notServed string
}

// movePointer adds the release if it is staged, and makes it the active one. It returns the new pointer.
func (c *candidate) movePointer(tx *store.Tx) (active release.Pointer, err error) {
	if c.staged != nil {
		if err := c.staged.Add(tx); err != nil {
			return active, err
		}
	}
	if err := c.change.Activate(tx); err != nil {
		return active, err
	}
	return release.Active(tx)
}

// candidateOf returns the active release with the settings of a. After an error it has the id. In a
// cluster it is followed: a node that cannot write serves it too.
func (v *Activator) candidateOf(ctx context.Context, a *app.App, active release.Pointer) (candidate, error) {
	bundle, err := v.stored(ctx, a, active.ID)
	if err != nil {
		return candidate{id: active.ID}, err
	}
	if v.inCluster() {
		return candidate{bundle: bundle, id: active.ID, follow: true, pointer: active}, nil
	}
	again := release.Activation{ID: active.ID, Origin: active.Origin, Expected: &active.ID, By: serverAuthor()}
	return candidate{bundle: bundle, id: active.ID, change: again}, nil
}

// next returns what is to be served with the settings of a: the release that was deployed, or
// the app directory; if another node activates releases, the one that is active. folder is the
// bundle of the app directory; nil: it was not read yet.
func (v *Activator) next(ctx context.Context, a *app.App, folder *runtime.Bundle) (next candidate, err error) {
	active, err := v.pointer(ctx)
	if err != nil {
		return next, err
	}
	deployed := active.Origin == release.Deploy && !v.from.FromFolder
	absent := folder == nil && v.from.MayWait && !a.HasSchema()
	switch {
	case active.ID != "" && (deployed || absent || v.follows()):
		if next, err = v.candidateOf(ctx, a, active); err == nil && !absent {
			next.notServed = v.noteFolder(a, folder, active.ID)
		}
		return next, err
	case absent || v.follows():
		return next, nil
	case folder == nil:
		if folder, err = a.Read(); err != nil {
			return next, err
		}
	}
	if v.inCluster() && active.ID == release.Describe(folder.App, app.Files(folder)).ID() {
		return v.candidateOf(ctx, a, active)
	}
	if err := checkFolder(ctx, a, v.store, folder); err != nil {
		return next, err
	}
	for _, m := range folder.Modules {
		if m.DebugErr != nil {
			v.logger.Warn("debug file not used", "file", release.DebugOf(m.Name), "cause", m.DebugErr)
		}
	}
	by := serverAuthor()
	staged, err := v.releases.Stage(ctx, folder.App, app.Files(folder), by)
	if err != nil {
		return next, err
	}
	if err := v.useStored(folder); err != nil {
		return next, err
	}
	folder.Release = staged.ID
	change := release.Activation{ID: staged.ID, Origin: release.Folder, By: by}
	return candidate{bundle: folder, id: staged.ID, staged: staged, change: change}, nil
}

// useStored replaces the trees of the app directory by those of the store, which has their contents: files of the
// directory may change while the bundle is served.
func (v *Activator) useStored(folder *runtime.Bundle) (err error) {
	for i := range folder.Modules {
		if files := folder.Modules[i].Files; files != nil {
			if folder.Modules[i].Files, err = v.releases.Tree(files.List()); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkFolder returns an error if the settings of a require a signature, and the release of the app
// directory has none: it has those of a stored release with the same files.
func checkFolder(ctx context.Context, a *app.App, st *store.Store, folder *runtime.Bundle) error {
	if len(a.Config.Release.TrustedKeys) == 0 {
		return nil
	}
	m := release.Describe(folder.App, app.Files(folder))
	var rel release.Release
	err := st.View(ctx, func(tx *store.Tx) (err error) {
		rel, err = release.Get(tx, m.ID())
		return err
	})
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return err
	}
	rel.Manifest = m
	return a.Config.Release.TrustedKeys.Check(rel)
}

// stored returns the bundle of a stored release with the settings of a.
func (v *Activator) stored(ctx context.Context, a *app.App, id string) (*runtime.Bundle, error) {
	if a.Problems.HasErrors() {
		return nil, a.InvalidConfiguration()
	}
	rel, files, err := v.releases.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := a.Config.Release.TrustedKeys.Check(rel); err != nil {
		return nil, err
	}
	return a.BundleOf(rel, files)
}

// noteFolder logs that the app directory is not served, and returns the id of its release. It does
// nothing if that is the active release, which has the given id, or if the directory is not valid.
// folder is its bundle; nil: it was not read yet.
func (v *Activator) noteFolder(a *app.App, folder *runtime.Bundle, id string) (notServed string) {
	if folder == nil {
		var err error
		if folder, err = a.Read(); err != nil {
			return ""
		}
	}
	notServed = release.Describe(folder.App, app.Files(folder)).ID()
	if notServed == id {
		return ""
	}
	v.logger.Warn("app directory not served: a deployed release is active", "release", id, "notServed", notServed)
	return notServed
}

// sweepEvery is the pause between two sweeps without an activation.
const sweepEvery = time.Hour

// sweep deletes what old releases leave, after each activation and each hour, until ctx ends.
func (v *Activator) sweep(ctx context.Context) {
	hourly := time.NewTicker(sweepEvery)
	defer hourly.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.swept:
		case <-hourly.C:
		}
		if err := v.releases.Sweep(ctx, clock.System()); err != nil && ctx.Err() == nil {
			v.logger.Warn("old releases not deleted; trying again later", "cause", err)
		}
	}
}
