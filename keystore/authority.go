package keystore

import (
	"cmp"
	"errors"
	"slices"

	"runner.example/internal/caller"
	"runner.example/internal/cost"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/state/audit"
	"runner.example/state/store"
)

// Authority is the caller that asks for a change, and the schema that applies. A handler
// acts with the authority of its request's caller. An operator's command has a caller of
// kind System, which reaches every tenant, or only its own if it has one.
//
// Operators reach all sessions. Others reach those of a user that they name if CreatesSession is
// set; those of all users of their tenant if the schema's @manage is true for them; and users
// their own: those with the same user and tenant.
type Authority struct {
	// Schema is the active one. Only an operator may leave it nil: to read, revoke,
	// disable and enable keys.
	Schema *schema.Schema
	Caller caller.Caller
	// RequestID and Address are for the audit log; either may be empty.
	RequestID, Address string
	// CreatesSession says that a handler may create sessions for any user, and list and revoke
	// the sessions of users that it names.
	CreatesSession bool
	// Work meters reading through keys: when it fails, the operation fails with
	// Deadline. A nil Work never fails.
	Work *cost.Meter
}

// keyUnits is the cost of reading a key.
const keyUnits = 2000

// readsKey charges for a key that is read.
func (a Authority) readsKey() error { return a.spend(keyUnits) }

func (a Authority) spend(units int) error {
	if err := a.Work.Spend(units); err != nil {
		return fault.Wrap(err, fault.Deadline, "the time of the request is over")
	}
	return nil
}

// errNoKey is the answer for every id that the caller cannot reach, whether or not a key
// has it.
var errNoKey error = fault.New(fault.NotFound, "there is no API key with this id").
	WithHint("runner api-keys list --all shows every key")

var errNoUser error = fault.New(fault.Invalid, "the user is missing: the caller has no sessions of its own")

func (a Authority) isOperator() bool { return a.Caller.Kind == caller.System }

// errNoIssueRule is the cause of a refusal that an @issue in the schema could change.
var errNoIssueRule = errors.New("the scope has no @issue")

// checkIssue returns the fault Denied if the caller may not create or rotate keys of the scope.
// scope is nil if the schema has no scope of that name.
func (a Authority) checkIssue(name string, scope *schema.Scope) error {
	switch {
	case a.isOperator() && (scope == nil || !scope.AllTenants || a.Caller.Tenant == ""):
		return nil
	case scope == nil:
		return fault.New(fault.Denied, "scope %q is not in the schema, so only operators issue its keys", name)
	case scope.AllTenants: // its keys would reach beyond the caller's tenant
		return fault.New(fault.Denied,
			"keys of scope %q are for all tenants: only an operator of all tenants may issue them", scope.Name)
	case a.Schema.MayIssue(scope, a.Caller):
		return nil
	case scope.Issue == nil && a.Caller.Kind != caller.Anonymous:
		return fault.Wrap(errNoIssueRule, fault.Denied,
			"this caller may not issue keys of scope %q: only operators may, until the scope has a line such as %s",
			scope.Name, a.issueLine())
	}
	return fault.New(fault.Denied, "this caller may not issue keys of scope %q", scope.Name)
}

// issueLine is an example of the line that lets callers issue keys.
func (a Authority) issueLine() string {
	if len(a.Schema.Auth.Roles) == 0 {
		return `@issue when auth.kind == "session"`
	}
	return `@issue when auth.role == "…"`
}

// reaches reports whether the caller may know that the key exists. That is so if it is an
// operator, if it owns the key or is the key, or if it is in the same tenant and the scope's
// @manage is true for it.
func (a Authority) reaches(r *record) bool {
	switch {
	case a.isOperator():
		return a.Caller.Tenant == "" || r.Tenant == a.Caller.Tenant
	case a.Schema == nil || r.Tenant != a.Caller.Tenant:
		return false
	case a.owns(r):
		return true
	}
	scope := a.Schema.ScopeOf(r.Scope, r.Capability)
	return scope != nil && a.Schema.MayManage(scope, a.Caller)
}

// owns reports whether the caller created the key, or is it.
func (a Authority) owns(r *record) bool {
	kind, id := a.owner()
	return id != "" && (kind == OwnerKey && r.ID == id || r.OwnerKind == kind && r.Owner == id)
}

// manages reports whether @manage of a scope is true for the caller. If a scope has the name, only
// that one counts.
func (a Authority) manages(name string) bool {
	if a.Schema == nil {
		return false
	}
	scopes := a.Schema.APIKeys.Scopes
	if scope := a.Schema.Scope(name); scope != nil {
		scopes = []*schema.Scope{scope}
	}
	return slices.ContainsFunc(scopes, func(scope *schema.Scope) bool { return a.Schema.MayManage(scope, a.Caller) })
}

// reachesSession reports whether the caller may revoke a session that it named by its id.
func (a Authority) reachesSession(r *sessionRecord) bool {
	if a.isOperator() {
		return a.Caller.Tenant == "" || r.Tenant == a.Caller.Tenant
	}
	return r.Tenant == a.Caller.Tenant && (a.isUser(r.UserID) || a.managesSessions())
}

// isUser reports whether the caller is that signed-in user.
func (a Authority) isUser(id string) bool {
	return a.Caller.Kind == caller.Session && id != "" && id == a.Caller.UserID
}

func (a Authority) managesSessions() bool {
	return a.Schema != nil && a.Schema.MayManageSessions(a.Caller)
}

// sessionOwner returns the owner of the sessions that the filter selects, if the caller reaches
// them.
func (a Authority) sessionOwner(f SessionFilter) (o sessionOwner, err error) {
	o = sessionOwner{user: f.UserID, tenant: a.Caller.Tenant}
	if o.user == "" && a.Caller.Kind == caller.Session {
		o.user = a.Caller.UserID
	}
	if f.Tenant != nil {
		o.tenant = *f.Tenant
	}
	o.allTenants = f.AllTenants || f.Tenant == nil && a.isOperator() && a.Caller.Tenant == ""
	if f.AllTenants && f.Tenant != nil {
		return o, fault.New(fault.Invalid, "tenant and allTenants exclude each other")
	}
	if err := cmp.Or(CheckLine("user", f.UserID), CheckLine("tenant", *cmp.Or(f.Tenant, new(string)))); err != nil {
		return o, err
	}
	inTenant := !o.allTenants && o.tenant == a.Caller.Tenant
	switch {
	case a.isOperator():
		if a.Caller.Tenant == "" || inTenant {
			return o, nil
		}
	case inTenant && a.isUser(o.user):
		return o, nil
	case !a.CreatesSession && !a.managesSessions():
		return o, fault.New(fault.Denied,
			"the caller reaches only its own sessions: `@manage when …` in the schema's `session cookie` allows those of others in its tenant, and a route with `mints: session` those of every user that it names")
	case o.user == "":
		return o, errNoUser
	case inTenant || a.CreatesSession:
		return o, nil
	}
	return o, fault.New(fault.Denied, "only sessions of the caller's own tenant can be listed and revoked")
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
	return nil, invalid(name, "scope %q is not in the schema%s", name, diag.DidYouMean(name, names))
}

// tenant returns the tenant of a key that the caller creates.
func (a Authority) tenant(named string, scope *schema.Scope) (string, error) {
	switch {
	case named != "" && !a.isOperator():
		return "", fault.New(fault.Denied, "tenant cannot be set: a key belongs to the tenant of its creator")
	case named != "" && scope.AllTenants:
		return "", fault.New(fault.Invalid, "tenant must be left out: keys of scope %q are for all tenants", scope.Name)
	case a.isOperator() && named != "" && a.Caller.Tenant != "" && named != a.Caller.Tenant:
		return "", fault.New(fault.Denied, "tenant must be left out: the operator reaches only its own tenant")
	case a.isOperator():
		named = cmp.Or(named, a.Caller.Tenant)
		if named == "" && a.Schema.NeedsTenant(scope) {
			return "", fault.New(fault.Invalid,
				"scope %q has only grants on rows of tenants, so a key without a tenant would see nothing: add --tenant, or @allTenants to the scope",
				scope.Name)
		}
		return named, CheckLine("tenant", named)
	case a.Caller.Tenant == "" && a.Schema.NeedsTenant(scope):
		return "", fault.New(fault.Invalid,
			"scope %q has only grants on rows of tenants, so a key of a caller without a tenant would see nothing", scope.Name)
	}
	return a.Caller.Tenant, nil
}

// owner returns the owner of keys that the caller creates. Keys of an operator have no owner. An
// anonymous caller owns no key.
func (a Authority) owner() (OwnerKind, string) {
	switch a.Caller.Kind {
	case caller.Session:
		return OwnerUser, a.Caller.UserID
	case caller.APIKey:
		return OwnerKey, a.Caller.KeyID
	}
	return "", ""
}

// record writes the audit record of a change in tx.
func (a Authority) record(tx *store.Tx, action, id string) error {
	return a.recordWith(tx, action, id, "")
}

// recordWith is record with a reason.
func (a Authority) recordWith(tx *store.Tx, action, id, reason string) error {
	r := a.Record(action, id)
	r.Reason = reason
	return audit.Append(tx, r)
}

// Record returns the audit record of an action that has succeeded: who has done it, and from which address.
func (a Authority) Record(action, target string) audit.Record {
	return audit.Record{
		RequestID: a.RequestID, Actor: audit.ActorOf(a.Caller), Action: action, Target: target, Result: audit.OK, Address: a.Address,
	}
}
