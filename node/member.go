package node

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/settings"
	"runner.example/internal/telemetry"
	"runner.example/node/admin"
	"runner.example/node/app"
	"runner.example/node/cluster"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/state/store"
)

// ErrBehind means that the server has ended because the log of its cluster no longer has what its
// store lacks. Run again: it then takes a backup of another node.
var ErrBehind = cluster.ErrBehind

// openMember connects to the cluster that the data directory belongs to, and opens the store. If the
// log no longer has what the store lacks, it takes a backup of another node first. The member is nil
// if the server is standalone. The caller closes the store, and then the member.
func openMember(ctx context.Context, a *app.App, metrics *telemetry.Metrics,
	logger *slog.Logger) (member *cluster.Node, st *store.Store, err error) {
	opt := cluster.StartOptions{
		Options: a.ClusterOptions(), Data: a.Data, Pepper: a.KeystoreOptions().PepperPath(), Logger: logger,
		Metrics: metrics,
	}
	if member, err = cluster.Start(opt); err != nil {
		return nil, nil, err
	}
	for {
		if st, err = openStore(ctx, a, member, metrics, logger); err != nil || member == nil {
			break
		}
		_, revision, _ := st.Position()
		if err = member.CheckLog(ctx, revision); err == nil {
			return member, st, nil
		}
		err = errors.Join(err, st.Close())
		if !errors.Is(err, ErrBehind) {
			break
		}
		if err = member.Resync(ctx); err != nil {
			break
		}
	}
	if err != nil && member != nil {
		member.Close()
	}
	return member, st, err
}

// Join lets operators activate releases and reload with v. In a cluster it also begins to answer the other
// nodes, and to follow them. Call it before the activator starts: files of releases may have to be fetched.
func (n *Node) Join(v *Activator) error {
	n.Local.Activate, n.Local.CheckRelease, n.Local.Reload, n.Local.Active = n.Activate(v), v.Check, v.Reload, v.served
	n.Local.Bundle = func(ctx context.Context, id string) (*runtime.Bundle, error) {
		if id == "" {
			return v.app.Load().Read()
		}
		return v.stored(ctx, v.app.Load(), id)
	}
	n.Local.Settings = func() []settings.Setting { return v.app.Load().Config.InForce() }
	n.addReleaseGauge(v.served)
	if n.member == nil {
		return nil
	}
	return n.member.Serve(n.Local.Store, n.Local.Keys, cluster.Hooks{
		App:          n.appName,
		Release:      func() string { return v.published.Load().id },
		NotReady:     n.notReady,
		Secrets:      func() map[string]string { return v.published.Load().secrets },
		Vars:         func() map[string]string { return v.published.Load().vars },
		Prepare:      v.Prepare,
		Activate:     v.Activate,
		OnSkew:       NewSkews(n.Runtime, n.Logger).Measured,
		OnMembership: n.Runtime.SetNode,
		OnServer:     func(cause *fault.Fault) { n.Runtime.SetNotReady(runtime.Server, cause) },
		OnBehind:     func() { n.end(ErrBehind) },
		OnUnusable:   n.end,
	})
}

// appName returns the declared name of the app, or "".
func (n *Node) appName() string {
	if s := n.Runtime.Schema(); s != nil {
		return s.App
	}
	return ""
}

// notReady returns why the server is not ready, or "", and whether it only waits for the first release.
func (n *Node) notReady() (why string, noRelease bool) {
	err := n.Runtime.NotReady()
	if err == nil {
		return "", false
	}
	return fault.Of(err).Detail, err == runtime.ErrNoRelease
}

// published is what other nodes may know of what is served.
type published struct {
	id      string            // of the release
	since   time.Time         // when it was activated
	secrets map[string]string // MACs of the values of the app's secrets
	vars    map[string]string // and of its variables
}

// publish notes what is served now. The pepper, which all nodes have, is behind the key of the MACs, so
// they reveal nothing about the values.
func (v *Activator) publish(now candidate) {
	p := &published{id: now.id, since: now.pointer.Time.Time, secrets: map[string]string{}, vars: map[string]string{}}
	defer v.published.Store(p)
	if now.bundle == nil {
		return
	}
	key := v.keys.Derive("comparison of secrets")
	for _, name := range now.bundle.Schema.Secrets {
		value, _ := now.bundle.Secrets.Get(name)
		p.secrets[name] = macOf(key[:], name, value.Reveal())
	}
	for _, variable := range now.bundle.Schema.Vars {
		p.vars[variable.Name] = macOf(key[:], "var "+variable.Name, string(variable.JSON))
	}
}

// served returns the release that is served.
func (v *Activator) served() admin.ActiveRelease {
	now := v.published.Load()
	if now.id == "" {
		return admin.ActiveRelease{}
	}
	return admin.ActiveRelease{ID: now.id, Since: new(now.since.UTC())}
}

// macOf returns the MAC of a named value.
func macOf(key []byte, name, value string) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s=%s", name, value)
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// Activate activates a stored release: here, or on the owner of the cluster, see Activator.Activate.
func (n *Node) Activate(v *Activator) func(context.Context, release.Activation) error {
	return func(ctx context.Context, change release.Activation) error {
		err := v.Activate(ctx, change)
		if n.member != nil && errors.Is(err, store.ErrNotOwner) {
			return n.member.ActivateOnOwner(ctx, change)
		}
		return err
	}
}

// end ends the server as a signal does.
func (n *Node) end(why error) {
	select {
	case n.ended <- why:
	default: // it ends already
	}
}
