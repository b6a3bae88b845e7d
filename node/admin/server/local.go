package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/clock"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/internal/settings"
	"runner.example/internal/system/process"
	"runner.example/internal/telemetry"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/node/cluster"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/runtime/recorded"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/jobs"
	"runner.example/state/store"
)

// Local is a node in this process. NewLocal returns one. Its creator owns its parts and closes them. It is
// safe for concurrent use once its fields are set.
type Local struct {
	Store    *store.Store
	Keys     *keystore.Keystore
	Releases *release.Releases
	// Data is the data directory.
	Data string
	// Recorded are the recordings of the node.
	Recorded *recorded.Keeper
	// Bundle returns the bundle of a stored release, of the app directory for "", with the settings of this node; nil: the
	// node has no runtime.
	Bundle func(ctx context.Context, release string) (*runtime.Bundle, error)
	// KeepJobs is how long cancelled jobs are kept.
	KeepJobs jobs.Keep
	// Schema returns the active schema, or nil. Without a schema, keys and sessions can be
	// listed and revoked, but not created.
	Schema func() *schema.Schema
	// Model returns the model of the active schema's rows, or nil. Only operations on rows
	// call it.
	Model func() (*entity.Model, error)
	// Runtime runs functions; nil: the node runs none.
	Runtime *runtime.Runtime
	// Running is the zero value if no server runs: a command has opened the store.
	Running

	backups sync.Mutex // held while a backup is recorded
}

// Running is what a Local has only in a running server.
type Running struct {
	// URL is the address for clients, Started when the server was started.
	URL     string
	Started time.Time
	// Metrics counts backups; nil counts nothing. MetricsURL is the URL of the metrics, or
	// empty.
	Metrics    *telemetry.Metrics
	MetricsURL string
	// Remote is the server for operators on the network; nil: there is none. RemoteURL is its
	// address.
	Remote    *RemoteServer
	RemoteURL string
	// Cluster is the node of a cluster that this is, or nil. Leave ends its server.
	Cluster *cluster.Node
	Leave   func()
	// Activate activates a stored release; nil: the server activates none.
	Activate func(context.Context, release.Activation) error
	// Settings returns the settings in force; nil: the server does not know them.
	Settings func() []settings.Setting
	// CheckRelease returns the error with which Activate would refuse a release whose modules the node may not have; it
	// is nil if Activate is. older: the release is older than the active one, so rows keep what it does not declare.
	CheckRelease func(context.Context, release.Manifest, []diag.Source, release.Activation) (older bool, err error)
	// Active returns the release that is served; nil: it returns none.
	Active func() admin.ActiveRelease
	// Reload reads the app and its settings again. It is nil if the server cannot reload.
	Reload func(context.Context) (*admin.Reloaded, error)
}

// NewLocal returns a node with these parts, without a schema, rows, functions and a server. The creator
// adds them before the first operation.
func NewLocal(st *store.Store, keys *keystore.Keystore, releases *release.Releases, keep jobs.Keep) *Local {
	return &Local{Store: st, Keys: keys, Releases: releases, KeepJobs: keep, Schema: func() *schema.Schema { return nil }}
}

// Client returns a client that runs everything in this process.
func (l *Local) Client() *admin.Client { return admin.NewClient(inProcess{l}) }

// inProcess is the transport of such a client. The operator is the user of the process.
type inProcess struct{ *Local }

func (p inProcess) Do(ctx context.Context, operation string, args []byte) ([]byte, error) {
	return p.do(ctx, newOperator(process.User()), operation, args)
}

func (p inProcess) Backup(ctx context.Context, request admin.BackupRequest, w io.Writer) error {
	if err := p.backup(ctx, request, w); err != nil {
		return explained(err)
	}
	return nil
}

func (p inProcess) Put(ctx context.Context, f release.File, contents io.Reader) error {
	if err := p.put(ctx, f, contents); err != nil {
		return explained(err)
	}
	return nil
}

func (p inProcess) PutBatch(ctx context.Context, body []byte) error {
	blobs, err := admin.ReadBatch(body)
	if err != nil {
		return err
	}
	if err := p.Store.PutBlobs(ctx, blobs); err != nil {
		return explained(err)
	}
	return nil
}

func (p inProcess) PutContents(ctx context.Context, f admin.Blob, name string, contents io.Reader) error {
	if err := p.putFile(ctx, f, contents); err != nil {
		return fmt.Errorf("send %s: %w", name, explained(err))
	}
	return nil
}

func (p inProcess) ReadContents(ctx context.Context, d store.Digest, w io.Writer) error {
	blob, err := p.openFile(ctx, d)
	if err != nil {
		return explained(err)
	}
	_, err = io.Copy(w, io.NewSectionReader(blob, 0, blob.Size()))
	return errors.Join(err, blob.Close())
}

// operator is who asks for an operation.
type operator struct {
	// id is a user of this machine, or a platform key.
	id string
	// requestID is that of the request, address that of a client on the network.
	requestID, address string
}

// newOperator returns an operator with a new request id.
func newOperator(id string) operator {
	return operator{id: id, requestID: ids.New(clock.System())}
}

// do runs the operation with that name and returns its result. Every error is a fault with a detail.
func (l *Local) do(ctx context.Context, who operator, name string, args []byte) ([]byte, error) {
	op, ok := handlers[name]
	if !ok {
		return nil, unknownOperation(name)
	}
	if op.commits && l.Cluster != nil {
		var end context.CancelFunc
		ctx, end = l.Cluster.WithMajority(ctx)
		defer end()
	}
	result, err := op.do(l, ctx, keystore.Authority{
		Schema:    l.Schema(),
		Caller:    caller.Caller{Kind: caller.System, UserID: who.id},
		RequestID: who.requestID, Address: who.address,
	}, args)
	if err != nil && context.Cause(ctx) == cluster.ErrNoMajority {
		return nil, cluster.ErrNoMajority
	}
	if err != nil {
		return nil, explained(err)
	}
	return admin.Marshal(result)
}

// explained returns err as a fault with a detail: operators may see the causes. Of an error of the store they see
// the reason that Store.Health has.
func explained(err error) error {
	f := fault.Of(err)
	switch {
	case f.Code == fault.DiskFull:
		return f
	case store.IsFull(err):
		return fault.New(fault.DiskFull, "%s", causes(err)).WithHint("make room on that disk; writes are then accepted without a restart")
	case f.Detail != "" && error(f) != store.ErrUnavailable && error(f) != store.ErrUnknown:
		return f
	}
	return fault.Wrap(err, f.Code, "%s", causes(err))
}

// causes returns the text of an error in one line.
func causes(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
