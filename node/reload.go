package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"runner.example/internal/console"
	"runner.example/internal/fault"
	"runner.example/internal/system/process"
	"runner.example/node/admin"
	"runner.example/node/app"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/state/store"
)

// Begin reloads at each SIGHUP, deletes what old releases leave, and in a cluster loads what other nodes
// activate and does the work of the owner, until end is called. Each has a goroutine of its own, so a
// slow reload does not delay a shutdown.
func (v *Activator) Begin(ctx context.Context) (end func()) {
	signals := make(chan os.Signal, 1)
	process.NotifyReload(signals)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { v.sweep(ctx) })
	running.Go(func() { v.expiry.Run(ctx) })
	if v.inCluster() {
		running.Go(func() { v.follow(ctx) })
		running.Go(func() { v.own(ctx) })
	}
	running.Go(func() {
		for {
			select {
			case <-signals:
				_, _ = v.Reload(ctx) // it logs the result
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
		v.prepared.close()
	}
}

// Reload takes the present settings, and activates the app directory, or the release that was
// deployed, with them. It logs the result. After an error the previous release and its settings
// stay in force. One activation runs at a time; others wait.
func (v *Activator) Reload(ctx context.Context) (*admin.Reloaded, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	done, err := v.reload(ctx)
	if err != nil {
		for _, part := range console.Parts(err) {
			if p, ok := errors.AsType[*console.Problems](part); ok {
				for _, line := range p.Excerpt().Lines() {
					v.logger.Error("reload failed", "diagnostic", line)
				}
			}
		}
		v.logger.Error("reload failed; previous release kept", "cause", err)
		return nil, err
	}
	v.logger.Info("reloaded", "routes", done.Routes, "modules", done.Modules, "changed", done.Changed)
	return done, nil
}

func (v *Activator) reload(ctx context.Context) (*admin.Reloaded, error) {
	next, err := v.from.Read()
	if err != nil {
		return nil, err
	}
	latest, err := v.next(ctx, next, nil) // reports the problems of the configuration too
	var settings []string
	if !next.Problems.HasErrors() {
		var refused error
		settings, refused = v.changedSettings(next)
		err = errors.Join(refused, err)
	} else if err == nil { // it waits for a release
		err = next.InvalidConfiguration()
	}
	if err != nil {
		return nil, err
	}
	changed := append(changedFiles(v.digests, digestsOf(latest.bundle)), settings...)
	if latest.bundle == nil {
		v.recordActivated(latest)
	} else if err := v.activate(ctx, latest); err != nil {
		return nil, err
	}
	// Nothing may fail any more.
	v.runtime.Reconfigure(next.Config.Runtime)
	v.from.Configure(next.Config.Telemetry)
	v.releases.SetTrustedKeys(next.Config.Release.TrustedKeys)
	changed = append(changed, v.changeCertificates(next)...)
	v.app.Store(next)
	done := &admin.Reloaded{Changed: changed, Release: v.id, NotServed: latest.notServed}
	if latest.bundle != nil {
		done.Routes, done.Modules = len(latest.bundle.Schema.Routes), len(latest.bundle.Modules)
	}
	return done, nil
}

// changeCertificates takes the certificates of the next configuration, and names those that differ.
func (v *Activator) changeCertificates(next *app.App) (changed []string) {
	before, after := v.app.Load().Config, next.Config
	if c := after.Runtime.Front.Certificate; differs(before.Runtime.Front.Certificate, c) {
		v.expiry.Set(frontListener, c)
		changed = append(changed, "the TLS certificate of [front]")
	}
	if c := after.Admin.Certificate; v.remote != nil && differs(before.Admin.Certificate, c) {
		v.remote.server.SetCertificate(c)
		v.expiry.Set(adminListener, c)
		changed = append(changed, "the TLS certificate of [admin]: its fingerprint is "+v.remote.server.Fingerprint())
	}
	v.expiry.Warn()
	return changed
}

// differs reports whether a certificate or its chain was replaced. Both are nil, or neither is.
func differs(before, after *tls.Certificate) bool {
	return after != nil && !slices.EqualFunc(before.Certificate, after.Certificate, bytes.Equal)
}

// changedSettings names the settings that differ and need no restart. The error names those that
// need one.
func (v *Activator) changedSettings(next *app.App) (changed []string, err error) {
	now := v.app.Load()
	changed, restart := now.Config.Changes(next.Config)
	if next.Data != now.Data && !slices.Contains(restart, "[store] dir") {
		restart = append(restart, "[store] dir")
	}
	if (now.Config.Runtime.Front.Certificate == nil) != (next.Config.Runtime.Front.Certificate == nil) {
		restart = append(restart, "[front] tls_cert")
	}
	if (now.Config.Admin.TLSCert == "") != (next.Config.Admin.TLSCert == "") {
		restart = append(restart, "[admin] tls_cert")
	}
	if len(restart) > 0 {
		return nil, fault.New(fault.Invalid, "changed settings need a restart: %s", strings.Join(restart, ", "))
	}
	return changed, nil
}

// changedFiles names the files, the secrets and the variables that differ.
func changedFiles(old, now map[string]store.Digest) []string {
	changed := []string{}
	for name, sum := range now {
		if was, ok := old[name]; !ok {
			changed = append(changed, name+" (new)")
		} else if was != sum {
			changed = append(changed, name)
		}
	}
	for name := range old {
		if _, ok := now[name]; !ok {
			changed = append(changed, name+" (removed)")
		}
	}
	slices.Sort(changed)
	return changed
}

// digestsOf returns the digests of the files, secrets and variables; nothing of nil.
func digestsOf(b *runtime.Bundle) map[string]store.Digest {
	all := map[string]store.Digest{}
	if b == nil {
		return all
	}
	for _, s := range b.Sources {
		all[s.Name] = sha256.Sum256(s.Text)
	}
	for _, m := range b.Modules {
		all[m.Name] = sha256.Sum256(m.Wasm)
		if m.Debug != nil {
			all[release.DebugOf(m.Name)] = sha256.Sum256(m.Debug)
		}
		if m.Files != nil {
			all[release.TreeOf(m.Name)] = m.Files.Digest()
		}
	}
	for dir, t := range b.Assets {
		all[release.AssetsOf(dir)] = t.Digest()
	}
	for _, name := range b.Schema.Secrets {
		if value, ok := b.Secrets.Get(name); ok {
			all[fmt.Sprintf("secret %s", name)] = sha256.Sum256([]byte(value.Reveal()))
		}
	}
	for _, v := range b.Schema.Vars {
		all["var "+v.Name] = sha256.Sum256(v.JSON)
	}
	return all
}
