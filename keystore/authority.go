package keystore

import (
	"cmp"

	"runner.example/audit"
	"runner.example/internal/caller"
	"runner.example/internal/cost"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/store"
)

// Authority is who asks for a change, and under which schema. What a handler
// asks for, it asks with the authority of its request's caller; an operator's
// command has a caller of kind System, who reaches every tenant, or one alone if the
// caller has one.
type Authority struct {
	// Schema is the active one. Only an operator can do without: to see, revoke,
	// disable and enable keys.
	Schema *schema.Schema
	Caller caller.Caller
	// RequestID and Address are for the audit; either may be empty.
	RequestID, Address string
	// Mints says that a handler may open and end sessions.
	Mints bool
	// Work counts what looking through keys computes: when it fails so does the
	// operation, with Deadline. Nil never does.
	Work *cost.Meter
}

// keyUnits is what reading a key costs.
const keyUnits = 2000

// readsKey counts a key that is read.
func (a Authority) readsKey() error {
	if err := a.Work.Spend(keyUnits); err != nil {
		return fault.Wrap(err, fault.Deadline, "the time of the request is over")
	}
	return nil
}

// errNoKey is the answer to every id that the caller cannot reach, whether a
// key has it or not.
var errNoKey error = fault.New(fault.NotFound, "there is no API key with this id")

func (a Authority) isOperator() bool { return a.Caller.Kind == caller.System }

// mayIssue reports whether the caller may issue and manage keys of the scope.
func (a Authority) mayIssue(scope *schema.Scope) bool {
	switch {
	case a.isOperator():
		return scope == nil || !scope.AllTenants || a.Caller.Tenant == ""
	case scope == nil || scope.AllTenants: // its keys would reach beyond the caller's tenant
		return false
	}
	return a.Schema.MayIssue(scope, a.Caller)
}

// reaches reports whether the caller may know that the key exists.
func (a Authority) reaches(r *record) bool {
	switch {
	case a.isOperator():
		return a.Caller.Tenant == "" || r.Tenant == a.Caller.Tenant
	case a.Schema == nil || r.Tenant != a.Caller.Tenant:
		return false
	}
	return a.mayIssue(a.Schema.ScopeOf(r.Scope, r.Capability))
}

// scope returns the declared scope of that name.
func (a Authority) scope(name string) (*schema.Scope, error) {
	if a.Schema == nil {
		return nil, fault.New(fault.Invalid, "no schema is active, so there is no scope %q", name)
	}
	if scope := a.Schema.Scope(name); scope != nil {
		return scope, nil
	}
	if name == "" {
		return nil, fault.New(fault.Invalid, "scope is missing: name a scope of the apiKeys block")
	}
	names := make([]string, len(a.Schema.APIKeys.Scopes))
	for i, scope := range a.Schema.APIKeys.Scopes {
		names[i] = scope.Name
	}
	return nil, fault.New(fault.Invalid, "scope %q is not in the schema%s", name, diag.DidYouMean(name, names))
}

// tenant returns the tenant of a key that the caller makes.
func (a Authority) tenant(named string, scope *schema.Scope) (string, error) {
	switch {
	case named != "" && !a.isOperator():
		return "", fault.New(fault.Denied, "tenant cannot be given: a key belongs to its maker's tenant")
	case named != "" && scope.AllTenants:
		return "", fault.New(fault.Invalid, "tenant must be left out: keys of scope %q are for all tenants", scope.Name)
	case a.isOperator():
		named = cmp.Or(named, a.Caller.Tenant)
		return named, CheckLine("tenant", named)
	}
	return a.Caller.Tenant, nil
}

// owner is the user behind the caller; of an API key that acts for no user, the
// key itself. An operator's keys have no owner.
func (a Authority) owner() string {
	if a.isOperator() {
		return ""
	}
	return cmp.Or(a.Caller.UserID, a.Caller.KeyID)
}

// record writes the audit record of a change that is being made in tx.
func (a Authority) record(tx *store.Tx, action, id string) error {
	return a.recordWith(tx, action, id, "")
}

// recordWith is record with more to say about the target.
func (a Authority) recordWith(tx *store.Tx, action, id, reason string) error {
	return audit.Append(tx, audit.Record{
		RequestID: a.RequestID, Actor: audit.ActorOf(a.Caller), Action: action, Target: id,
		Result: audit.OK, Reason: reason, Address: a.Address,
	})
}
