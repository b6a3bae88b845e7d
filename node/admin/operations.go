package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/internal/telemetry"
	"runner.example/keystore"
	"runner.example/node/cluster"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/schema"
	"runner.example/state/audit"
	"runner.example/state/entity"
	"runner.example/state/jobs"
	"runner.example/state/store"
)

// Local is a node in this process. The creator of a Local owns its parts and closes them.
// It is safe for concurrent use.
type Local struct {
	Store *store.Store
	Keys  *keystore.Keystore
	// Schema returns the active schema, or nil. Without a schema, keys and sessions can be
	// listed and revoked, but not created.
	Schema func() *schema.Schema
	// Model returns the model of the active schema's rows, or nil. Only operations on rows
	// call it.
	Model func() (*entity.Model, error)
	// Runtime runs functions; nil: the node runs none.
	Runtime *runtime.Runtime
	// URL is the address of the server; empty without one.
	URL string
	// Started is when the server was started.
	Started time.Time
	// KeepJobs is how long cancelled jobs are kept.
	KeepJobs jobs.Keep
	// Metrics counts backups; nil counts nothing. MetricsURL is the URL of the metrics, or
	// empty.
	Metrics    *telemetry.Metrics
	MetricsURL string
	// Remote is the server for operators on the network; nil: there is none. RemoteURL is its
	// address.
	Remote    *RemoteServer
	RemoteURL string
	// Releases are those in the store.
	Releases *release.Releases
	// Activate activates a stored release. It is nil if no server runs.
	Activate func(context.Context, release.Activation) error
	// Cluster is the node of a cluster that this is, or nil. Leave ends its server.
	Cluster *cluster.Node
	Leave   func()
	// Reload reads the app and its settings again. It is nil if the node cannot reload.
	Reload func(context.Context) (*Reloaded, error)
}

// CreateKey describes a new key.
type CreateKey struct {
	Scope string `json:"scope"`
	Name  string `json:"name"`
	// ExpiresIn is the lifetime in seconds; nil means the schema's.
	ExpiresIn *int64 `json:"expiresIn,omitempty"`
	// Metadata is a JSON object; nil: none.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Tenant   string          `json:"tenant,omitempty"`
}

// RotateKey names a key that gets a new token.
type RotateKey struct {
	ID string `json:"id"`
	// GracePeriod is how long the old token stays valid, in seconds.
	GracePeriod int64 `json:"gracePeriod"`
}

// KeyID identifies a key.
type KeyID struct {
	ID string `json:"id"`
}

// ListKeys selects keys; the zero value selects the first 100 active ones.
type ListKeys struct {
	Scope string `json:"scope,omitempty"`
	// Owner is the id of the user or the key that created the keys.
	Owner string `json:"owner,omitempty"`
	// All includes expired and revoked keys.
	All    bool   `json:"all,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// ListAudit selects records.
type ListAudit struct {
	// From is the sequence number of the first record; 0: the newest Limit records.
	From uint64 `json:"from,omitempty"`
	// Limit is 1-10,000; 0: 100.
	Limit int `json:"limit,omitempty"`
}

// VerifyAudit names the head to verify the chain against.
type VerifyAudit struct {
	// Head is a head that was kept, as the log shows it, or empty.
	Head string `json:"head,omitempty"`
}

// AuditHead is the end of the chain.
type AuditHead struct {
	Count uint64 `json:"count"`
	// Head can be given to a later VerifyAudit.
	Head string `json:"head"`
}

const (
	// DefaultRecords is how many records a list of the audit has without a limit, MaxRecords the most.
	DefaultRecords = 100
	MaxRecords     = 10_000
)

// SecondsOf returns d in whole seconds, as requests have it.
func SecondsOf(d time.Duration) int64 { return int64(d / time.Second) }

// operation is an operation on a node. Its arguments and its result are JSON.
type operation struct {
	// role is the weakest one that may run it over the network.
	role         keystore.Role
	args, result reflect.Type
	// commits: it stores something.
	commits bool
	do      func(l *Local, ctx context.Context, who keystore.Authority, args []byte) (any, error)
}

// streams are the roles of what is not in operations, because a stream is sent.
var streams = map[string]keystore.Role{
	uploadOperation: keystore.RoleDeploy,
	backupOperation: keystore.RoleAdmin,
}

// operations are all operations, by the names that the audit log uses too.
var operations = map[string]operation{
	"status":              with(keystore.RoleRead, (*Local).status),
	"apiKeys.create":      commits(with(keystore.RoleAdmin, (*Local).createKey)),
	"apiKeys.get":         with(keystore.RoleAdmin, (*Local).getKey),
	"apiKeys.list":        with(keystore.RoleAdmin, (*Local).listKeys),
	"apiKeys.rotate":      commits(with(keystore.RoleAdmin, (*Local).rotateKey)),
	"apiKeys.revoke":      commits(with(keystore.RoleAdmin, takeAway((*keystore.Keystore).Revoke))),
	"apiKeys.disable":     commits(with(keystore.RoleAdmin, takeAway((*keystore.Keystore).Disable))),
	"apiKeys.enable":      commits(with(keystore.RoleAdmin, (*Local).enableKey)),
	"platformKeys.create": commits(with(keystore.RoleAdmin, (*Local).createPlatformKey)),
	"platformKeys.list":   with(keystore.RoleAdmin, (*Local).listPlatformKeys),
	"platformKeys.revoke": commits(with(keystore.RoleAdmin, (*Local).revokePlatformKey)),
	"schema.compare":      with(keystore.RoleDeploy, (*Local).compareSchema),
	"sessions.create":     commits(with(keystore.RoleAdmin, (*Local).createSession)),
	"sessions.list":       with(keystore.RoleAdmin, (*Local).listSessions),
	"sessions.revoke":     commits(with(keystore.RoleAdmin, (*Local).revokeSession)),
	"sessions.revokeAll":  commits(with(keystore.RoleAdmin, (*Local).revokeSessions)),
	"data.get":            with(keystore.RoleAdmin, (*Local).getRow),
	"data.list":           with(keystore.RoleAdmin, (*Local).listRows),
	"data.import":         commits(with(keystore.RoleAdmin, (*Local).importRows)),
	"data.update":         commits(with(keystore.RoleAdmin, (*Local).updateRows)),
	"data.delete":         commits(with(keystore.RoleAdmin, (*Local).deleteRows)),
	"data.drop":           commits(with(keystore.RoleAdmin, (*Local).dropKept)),
	"data.each":           commits(with(keystore.RoleAdmin, (*Local).callEach)),
	"functions.call":      with(keystore.RoleAdmin, (*Local).callFunction),
	"jobs.list":           with(keystore.RoleAdmin, (*Local).listJobs),
	"jobs.get":            with(keystore.RoleAdmin, (*Local).getJob),
	"jobs.retry":          commits(with(keystore.RoleAdmin, (*Local).retryJob)),
	"jobs.cancel":         commits(with(keystore.RoleAdmin, (*Local).cancelJob)),
	"jobs.enqueue":        commits(with(keystore.RoleAdmin, (*Local).enqueueJob)),
	"audit.list":          with(keystore.RoleAdmin, (*Local).listAudit),
	"audit.verify":        with(keystore.RoleAdmin, (*Local).verifyAudit),
	"reload":              with(keystore.RoleAdmin, (*Local).reload),
	"releases.list":       with(keystore.RoleRead, (*Local).listReleases),
	"releases.get":        with(keystore.RoleRead, (*Local).getRelease),
	"releases.missing":    with(keystore.RoleRead, (*Local).missingFiles),
	"releases.add":        commits(with(keystore.RoleDeploy, (*Local).addRelease)),
	"releases.activate":   commits(with(keystore.RoleDeploy, (*Local).activateRelease)),
	"clock.show":          with(keystore.RoleAdmin, (*Local).showClock),
	"clock.accept":        commits(with(keystore.RoleAdmin, (*Local).acceptClock)),
	"cluster.invite":      commits(with(keystore.RoleAdmin, (*Local).inviteNode)),
	"cluster.status":      with(keystore.RoleRead, (*Local).clusterStatus),
	"cluster.leave":       commits(with(keystore.RoleAdmin, (*Local).leaveCluster)),
}

// with returns an operation that decodes its arguments. An unknown member is refused: what it
// asks for would silently not be done.
func with[A, R any](role keystore.Role, do func(l *Local, ctx context.Context, who keystore.Authority, args A) (R, error)) operation {
	return operation{role: role, args: reflect.TypeFor[A](), result: reflect.TypeFor[R](), do: func(l *Local, ctx context.Context, who keystore.Authority, text []byte) (any, error) {
		var args A
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&args); err != nil {
			return nil, fault.New(fault.Invalid, "invalid arguments: %s", strings.TrimPrefix(err.Error(), "json: "))
		}
		return do(l, ctx, who, args)
	}}
}

// commits marks an operation that stores something: in a cluster it ends when no majority of the voters
// can be reached.
func commits(op operation) operation {
	op.commits = true
	return op
}

// roleOf returns the role that the operation with that name needs over the network.
func roleOf(name string) (role keystore.Role, ok bool) {
	if role, ok = streams[name]; ok {
		return role, true
	}
	op, ok := operations[name]
	return op.role, ok
}

func unknownOperation(name string) error {
	return fault.New(fault.NotFound, "unknown operation %q: is the server older than the command?", name).
		WithHint("runner version and runner status show the versions of both")
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

// userOperator returns the operator for a user of this machine.
func userOperator(uid uint32) operator { return newOperator(fmt.Sprintf("uid:%d", uid)) }

// do runs the operation with that name and returns its result. Every error is a fault with a
// detail.
func (l *Local) do(ctx context.Context, who operator, name string, args []byte) ([]byte, error) {
	op, ok := operations[name]
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
	return marshal(result)
}

// marshal returns the JSON of v. Rows in it stay as they are: json.Marshal would escape <, >
// and & in them.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return out.Bytes(), err
}

// explained returns err as a fault with a detail: operators may see the causes.
func explained(err error) error {
	f := fault.Of(err)
	if f.Detail != "" {
		return f
	}
	return fault.Wrap(err, f.Code, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
}

func (l *Local) createKey(ctx context.Context, who keystore.Authority, args CreateKey) (key keystore.Key, err error) {
	request, err := args.request()
	if err != nil {
		return key, err
	}
	_, err = l.Store.Update(ctx, func(tx *store.Tx) error {
		key, err = l.Keys.Create(tx, who, request)
		return err
	})
	return key, err
}

// Check returns the error with which every node with that schema would refuse the request,
// or nil.
func (r CreateKey) Check(s *schema.Schema) error {
	request, err := r.request()
	if err != nil {
		return err
	}
	return keystore.Authority{Schema: s, Caller: caller.Caller{Kind: caller.System}}.Check(request)
}

func (r CreateKey) request() (keystore.CreateRequest, error) {
	request := keystore.CreateRequest{Scope: r.Scope, Name: r.Name, Metadata: r.Metadata, Tenant: r.Tenant}
	if r.ExpiresIn != nil {
		lifetime, err := seconds("expiresIn", *r.ExpiresIn)
		if err != nil {
			return request, err
		}
		request.ExpiresIn = &lifetime
	}
	return request, nil
}

func (l *Local) rotateKey(ctx context.Context, who keystore.Authority, args RotateKey) (key keystore.Key, err error) {
	grace, err := seconds("gracePeriod", args.GracePeriod)
	if err != nil {
		return key, err
	}
	_, err = l.Store.Update(ctx, func(tx *store.Tx) error {
		key, err = l.Keys.Rotate(tx, who, args.ID, grace)
		return err
	})
	return key, err
}

// seconds converts a number of seconds, and refuses what a duration cannot hold.
func seconds(name string, n int64) (time.Duration, error) {
	if n > math.MaxInt64/int64(time.Second) || n < math.MinInt64/int64(time.Second) {
		return 0, fault.New(fault.Invalid, "%s is longer than 292 years", name)
	}
	return time.Duration(n) * time.Second, nil
}

func (l *Local) getKey(ctx context.Context, who keystore.Authority, args KeyID) (key keystore.Key, err error) {
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		key, err = l.Keys.Get(tx, who, args.ID)
		return err
	})
	return key, err
}

func (l *Local) listKeys(ctx context.Context, who keystore.Authority, args ListKeys) (page keystore.Page, err error) {
	err = l.Store.View(ctx, func(tx *store.Tx) error {
		page, err = l.Keys.List(tx, who, keystore.Filter{
			Scope: args.Scope, Owner: args.Owner, All: args.All, Limit: args.Limit, Cursor: args.Cursor,
		})
		return err
	})
	return page, err
}

// takeAway returns an operation that takes the rights of one key away, on all nodes.
func takeAway(do func(*keystore.Keystore, *store.Tx, keystore.Authority, string) (keystore.Key, error)) func(*Local, context.Context, keystore.Authority, KeyID) (Changed[keystore.Key], error) {
	return func(l *Local, ctx context.Context, who keystore.Authority, args KeyID) (Changed[keystore.Key], error) {
		var key keystore.Key
		seq, err := l.Store.Update(ctx, func(tx *store.Tx) (err error) {
			key, err = do(l.Keys, tx, who, args.ID)
			return err
		})
		return everywhere(ctx, l, key, seq, err)
	}
}

func (l *Local) enableKey(ctx context.Context, who keystore.Authority, args KeyID) (key keystore.Key, err error) {
	_, err = l.Store.Update(ctx, func(tx *store.Tx) error {
		key, err = l.Keys.Enable(tx, who, args.ID)
		return err
	})
	return key, err
}

func (l *Local) listAudit(ctx context.Context, _ keystore.Authority, args ListAudit) ([]audit.Entry, error) {
	switch {
	case args.Limit == 0:
		args.Limit = DefaultRecords
	case args.Limit < 0 || args.Limit > MaxRecords:
		return nil, fault.New(fault.Invalid, "limit must be between 1 and %d", MaxRecords)
	}
	var entries []audit.Entry
	var err error
	if args.From == 0 {
		entries, err = audit.Newest(ctx, l.Store, args.Limit)
	} else {
		entries, err = audit.List(ctx, l.Store, args.From, args.Limit)
	}
	return append([]audit.Entry{}, entries...), err
}

func (l *Local) verifyAudit(ctx context.Context, _ keystore.Authority, args VerifyAudit) (AuditHead, error) {
	var want []audit.Head
	if args.Head != "" {
		head, err := audit.ParseHead(args.Head)
		if err != nil {
			return AuditHead{}, fault.New(fault.Invalid, "%v", err)
		}
		want = []audit.Head{head}
	}
	err := l.Store.Verify(ctx)
	var head audit.Head
	if err == nil {
		head, err = audit.Verify(ctx, l.Store, want...)
	}
	if errors.Is(err, store.ErrDamaged) {
		err = fault.New(fault.Invalid, "%v", err) // the socket passes on the text
	}
	return AuditHead{Count: head.Count, Head: head.String()}, err
}
