package etcdlog_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"runner.example/internal/fault"
	"runner.example/state/store/commitlog"
	"runner.example/state/store/etcdlog"
)

func TestALogBelongsToOneCluster(t *testing.T) {
	t.Parallel()
	c := dial(t, nil, oneServer(t))
	for range 2 {
		if err := c.Claim(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	}
	if err := c.Claim(t.Context(), "b"); !errors.Is(err, etcdlog.ErrOtherCluster) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("another cluster gets %v", err)
	}
}

func TestANodeIsToldWhetherItCanFollowTheLog(t *testing.T) {
	t.Parallel()
	servers := []string{oneServer(t)}
	n, c := open(t, servers, 0), dial(t, nil, servers...)
	if err := c.Check(t.Context(), 0); err != nil {
		t.Errorf("a new store and a new log: %v", err)
	}
	if err := c.Check(t.Context(), 7); !errors.Is(err, etcdlog.ErrRewound) || !strings.Contains(err.Error(), "revision 0") || !strings.Contains(err.Error(), "applied 7") {
		t.Errorf("a new log: %v", err)
	}
	for batch := range uint64(300) {
		put(t, n, 1+batch%3, 1+batch/3, "entry")
	}
	n.has(t, 300)
	got := n.wait(t, func([]delivered) bool { return true })
	at := func(i int) uint64 { return got[i].revision }
	if err := n.Truncate(t.Context(), at(200)); err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]error{0: etcdlog.ErrTruncated, 198: etcdlog.ErrTruncated, 200: nil, 250: nil, 299: nil} {
		if err := c.Check(t.Context(), at(i)); !errors.Is(err, want) {
			t.Errorf("after entry %d: %v", i, err)
		}
	}
	if err := c.Check(t.Context(), at(299)+1); !errors.Is(err, etcdlog.ErrRewound) {
		t.Errorf("after one that is not there: %v", err)
	}
	if left, err := c.Etcd().Get(t.Context(), "log/", clientv3.WithPrefix()); err != nil || left.Count != 99 {
		t.Errorf("%d entries are left, %v", left.Count, err)
	}
}

// Compactions by others than Truncate, such as an operator's etcd does, cut off nobody who has all.
func TestANodeWithAllEntriesFollowsACompactedLog(t *testing.T) {
	t.Parallel()
	servers := []string{oneServer(t)}
	n, c := open(t, servers, 0), dial(t, nil, servers...)
	put(t, n, 1, 1, "a")
	tip := n.wait(t, func(got []delivered) bool { return len(got) == 1 })[0].revision
	var newest int64
	for _, value := range []string{"1", "2", "3"} {
		done, err := c.Etcd().Put(t.Context(), "other", value)
		if err != nil {
			t.Fatal(err)
		}
		newest = done.Header.Revision
	}
	if _, err := c.Etcd().Compact(t.Context(), newest); err != nil {
		t.Fatal(err)
	}
	late := open(t, servers, tip)
	put(t, n, 1, 2, "b")
	if got := late.has(t, 1); got[0] != "b" || c.Check(t.Context(), tip) != nil {
		t.Errorf("it gets %q, %v", got, late.Err())
	}
}

func TestAnEntryThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	n := open(t, []string{oneServer(t)}, 0)
	err := n.Append(t.Context(), commitlog.ID{Proposer: 1, Batch: 1}, make([]byte, etcdlog.MaxEntryBytes+1))
	if !errors.Is(err, etcdlog.ErrTooLarge) || fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("it is refused with %v", err)
	}
	put(t, n, 1, 2, "b")
	if got := n.has(t, 1); !slices.Equal(got, []string{"b"}) {
		t.Errorf("the log has %q", got)
	}
}

func TestAFullLogTakesEntriesAfterATruncation(t *testing.T) {
	t.Parallel()
	o := options(t, t.TempDir(), 1)[0]
	o.QuotaBytes = 8 << 20
	start(t, o)
	n := open(t, []string{o.ClientURL}, 0)
	batch := uint64(0)
	for round := range 3 {
		appended := 0
		for {
			batch++
			err := n.Append(t.Context(), commitlog.ID{Proposer: 1, Batch: batch}, make([]byte, 500<<10))
			if errors.Is(err, etcdlog.ErrFull) {
				break
			}
			if err != nil || appended == 100 {
				t.Fatalf("round %d, entry %d: %v", round, appended, err)
			}
			appended++
		}
		if appended < 5 {
			t.Errorf("round %d: only %d entries fit", round, appended)
		}
		tip, err := n.Tip(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n.wait(t, func(got []delivered) bool { return len(got) > 0 && got[len(got)-1].revision == tip })
		if err := n.Truncate(t.Context(), tip); err != nil {
			t.Fatal(err)
		}
	}
	put(t, n, 1, batch, "it was not in the log")
	n.wait(t, func(got []delivered) bool { return got[len(got)-1].entry == "it was not in the log" })
	if n.Err() != nil {
		t.Error(n.Err())
	}
}

func TestOnlyItsOwnCertificatesOpenTheLog(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t), newAuthority(t)
	o := options(t, t.TempDir(), 1)[0]
	o.Self.PeerURL, o.ClientURL = strings.Replace(o.Self.PeerURL, "http", "https", 1), strings.Replace(o.ClientURL, "http", "https", 1)
	o.Members = []etcdlog.Member{o.Self}
	o.TLS = a.issueAt("server", o.ClientURL)
	start(t, o)
	claim := func(files *etcdlog.TLS, limit time.Duration) error {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		c := dial(t, files, o.ClientURL)
		return c.Claim(ctx, "a")
	}
	client := a.issue("client", "192.0.2.1")
	if err := claim(client, time.Minute); err != nil {
		t.Errorf("a client with a certificate gets %v", err)
	}
	foreign := other.issue("client", "127.0.0.1")
	foreign.CAFile = a.file // it trusts the server
	distrusting := other.issue("other", "127.0.0.1")
	var refused sync.WaitGroup
	refused.Go(func() {
		if claim(foreign, 2*time.Second) == nil {
			t.Error("a certificate of another authority opened it")
		}
	})
	refused.Go(func() {
		if claim(distrusting, 2*time.Second) == nil {
			t.Error("a client trusts a server of another authority")
		}
	})
	refused.Wait()
	u, err := url.Parse(o.ClientURL)
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range []*tls.Config{
		{InsecureSkipVerify: true}, {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12},
	} {
		conn, err := tls.Dial("tcp", u.Host, config)
		if err == nil {
			_, err = conn.Read(make([]byte, 1)) // the server's answer to the certificate
			conn.Close()
		}
		if err == nil {
			t.Errorf("a connection with %+v was accepted", config)
		}
	}
	a.issue("server", "192.0.2.7") // of another machine
	if claim(client, 2*time.Second) == nil {
		t.Error("a client accepts the certificate of another machine")
	}
	a.issueAt("server", o.ClientURL) // renewed
	if err := claim(client, time.Minute); err != nil {
		t.Errorf("after the server's certificate was renewed, a client gets %v", err)
	}
}

func TestAddressesAreEncryptedIfCertificatesAreGiven(t *testing.T) {
	files := newAuthority(t).issue("n", "127.0.0.1")
	for _, c := range []struct {
		address string
		tls     *etcdlog.TLS
	}{{"http://127.0.0.1:1", files}, {"https://127.0.0.1:1", nil}, {"127.0.0.1:1", nil}, {"http://127.0.0.1", nil}} {
		if _, err := etcdlog.Dial([]string{c.address}, c.tls); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s with %v: %v", c.address, c.tls, err)
		}
	}
	missing := &etcdlog.TLS{CertFile: filepath.Join(t.TempDir(), "c"), KeyFile: files.KeyFile, CAFile: files.CAFile}
	if _, err := etcdlog.Dial([]string{"https://127.0.0.1:1"}, missing); err == nil || !strings.Contains(err.Error(), missing.CertFile) {
		t.Errorf("a certificate that is missing: %v", err)
	}
}
