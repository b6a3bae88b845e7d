package hostabi_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/argon2"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/longwork"
	"runner.example/internal/fairqueue"
	"runner.example/tests/bench/arms"
)

// light makes a guest whose host hashes with little memory. It has plenty of CPU time, unless a test limits
// that: what the host computes counts by the clock.
func light(t *testing.T, limits hostabi.Limits) *guest {
	limits.CPU = cmp.Or(limits.CPU, time.Hour)
	g := newGuest(t, limits)
	g.call.Host.Passwords.Memory, g.call.Host.Passwords.Passes = 7<<20, 1
	return g
}

func TestAPasswordIsHashedAndVerified(t *testing.T) {
	g := light(t, hostabi.Limits{})
	result, n := g.op("password.hash", `{"password":"pässword"}`)
	hash, _ := result["hash"].(string)
	if n < 0 || !regexp.MustCompile(`^\$argon2id\$v=19\$m=7168,t=1,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$`).MatchString(hash) {
		t.Fatalf("%d %v", n, result)
	}
	for _, row := range []struct {
		args          string
		valid, rehash bool
	}{
		{fmt.Sprintf(`{"password":"pässword","hash":%q}`, hash), true, false},
		{fmt.Sprintf(`{"password":"password","hash":%q}`, hash), false, false},
		{fmt.Sprintf(`{"password":"","hash":%q}`, hash), false, false},
		{`{"password":"correct horse é","hash":"$2b$05$joct7.wqd4OEhsqpgQtXk.mkyPCjvLPlVv5bp8U0Xj56u.bLN6f.G"}`, true, true},
		{`{"password":"correct horse é","hash":"pbkdf2_sha256$1000$saltsaltsalt$HpSbrkBrDWDAB9HrNXHZggikF+GO3Q6ksWrO0IeZG4M="}`, true, true},
		{`{"password":"pässword","hash":null}`, false, false},
		{`{"password":"pässword"}`, false, false},
	} {
		if result, n := g.op("password.verify", row.args); n < 0 || result["valid"] != row.valid || result["rehash"] != row.rehash {
			t.Errorf("%s: %d %v", row.args, n, result)
		}
	}
}

// TestAKeyIsDerivedWithScrypt has vectors of RFC 7914, section 12.
func TestAKeyIsDerivedWithScrypt(t *testing.T) {
	g := light(t, hostabi.Limits{})
	for _, row := range []struct{ args, key string }{
		{`{"password":"","salt":"","n":16,"r":1,"p":1,"length":64}`,
			"77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"},
		{`{"password":{"base64":"cGFzc3dvcmQ="},"salt":"NaCl","n":1024,"r":8,"p":16,"length":32}`,
			"fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"},
	} {
		result, n := g.op("password.scrypt", row.args)
		text, _ := result["base64"].(string)
		if key, err := base64.StdEncoding.DecodeString(text); n < 0 || err != nil || hex.EncodeToString(key) != row.key {
			t.Errorf("%s: %d %v", row.args, n, result)
		}
	}
}

func TestBadArgumentsOfPasswordsNameTheMember(t *testing.T) {
	g := light(t, hostabi.Limits{})
	for _, row := range []struct {
		op, args string
		errno    int32
		message  string
	}{
		{"password.hash", `{}`, invalid, `member "password" is missing`},
		{"password.hash", `{"password":7}`, invalid, `member "password" must be a string`},
		{"password.hash", `{"password":"x","cost":1}`, invalid, `unknown member "cost"`},
		{"password.verify", `{"hash":"x"}`, invalid, `member "password" is missing`},
		{"password.verify", `{"password":"x","hash":7}`, invalid, `member "hash" must be a string`},
		{"password.verify", `{"password":"x","hash":"x"}`, invalid, `member "hash" is not a hash of a known kind`},
		{"password.verify", `{"password":"x","hash":""}`, invalid, `member "hash" is not a hash of a known kind`},
		{"password.verify", `{"password":"x","hash":"$argon2id$v=19$m=1,t=1,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA"}`, invalid, `member "hash" is not a valid hash of Argon2: m must be`},
		{"password.verify", `{"password":"x","hash":"$argon2id$v=19$m=4194304,t=1,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA"}`, tooLarge, `verifying this hash needs 4gb of memory`},
		{"password.scrypt", `{"password":"x","salt":"x","n":16,"r":1,"p":1}`, invalid, `member "length" is missing`},
		{"password.scrypt", `{"password":"x","salt":"x","n":16,"r":1,"p":1,"length":0}`, invalid, `member "length" must be from 1 to 1024`},
		{"password.scrypt", `{"password":"x","salt":"x","n":17,"r":1,"p":1,"length":8}`, invalid, `parameter N must be a power of two`},
		{"password.scrypt", `{"password":"x","salt":"x","n":16,"r":0,"p":1,"length":8}`, invalid, `parameters r and p must be 1 to 65536`},
		{"password.scrypt", `{"password":"x","salt":"x","n":1048576,"r":8,"p":1,"length":8}`, tooLarge, `this key needs 1gb of memory`},
		{"crypto.sign", `{"algorithm":{"name":"MD5"},"key":{"type":"secret","algorithm":{"name":"MD5"},"data":"x"},"data":"x"}`, invalid, `NotSupportedError: MD5 is not an algorithm of signatures`},
		{"crypto.generateKey", `{"algorithm":{"name":"Ed25519"}}`, invalid, `SyntaxError: a private key must have a usage`},
	} {
		result, n := g.op(row.op, row.args)
		if message := fmt.Sprint(result["message"]); n != row.errno || !strings.HasPrefix(message, row.op+": "+row.message) {
			t.Errorf("%s %s: %d %v, want %q", row.op, row.args, n, result, row.message)
		}
	}
}

// What the host hashes is CPU time of the request.
func TestHashingIsCPUTimeOfTheRequest(t *testing.T) {
	g := light(t, hostabi.Limits{})
	began := time.Now()
	if _, n := g.op("password.hash", `{"password":"x"}`); n < 0 {
		t.Fatal(n)
	}
	once, took := g.call.CPU(), time.Since(began)
	if once <= 0 || once > took || g.call.Spent.Time != once {
		t.Errorf("one hash: %s of CPU time in %s", once, took)
	}
	if _, n := g.op("sleep", `{"seconds":0.05}`); n < 0 || g.call.CPU() != once {
		t.Errorf("after a sleep: %d, %s of CPU time", n, g.call.CPU())
	}
	g.op("password.verify", `{"password":"x"}`)
	if g.call.CPU() <= once {
		t.Error("a verification is not counted")
	}
	// A result that is never taken counts, too.
	before := g.call.CPU()
	ticket := g.do("call_start", "password.hash", `{"password":"x"}`)
	if n := g.raw("call_wait"); n != ticket {
		t.Fatalf("call_wait returns %d, not %d", n, ticket)
	}
	g.call.End()
	if g.call.CPU() <= before {
		t.Error("a result that is never taken is not counted")
	}
}

// On the clock of the bubble a hash takes no time, so all of the time is the wait for its slot.
func TestWaitingForASlotIsNotCPUTimeOfTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := light(t, hostabi.Limits{})
		const busy = 3 * time.Second
		slots := longwork.New(longwork.Options{Parallel: 1})
		g.call.Host.LongWork = slots
		go func() {
			_, _ = slots.Run(context.Background(), fairqueue.Parties{"other"}, func() error { time.Sleep(busy); return nil })
		}()
		synctest.Wait()
		if _, n := g.op("password.hash", `{"password":"x"}`); n < 0 {
			t.Fatal(n)
		}
		if g.call.CPU() != 0 || g.call.Spent.Time != 0 || g.call.Waited() != busy {
			t.Errorf("%s of CPU time, %s of the handler, waited %s, want 0, 0 and %s", g.call.CPU(), g.call.Spent.Time, g.call.Waited(), busy)
		}
	})
}

func TestTheCPUBudgetEndsHashing(t *testing.T) {
	g := light(t, hostabi.Limits{CPU: time.Millisecond})
	defer func() {
		if p := recover(); p != hostabi.ErrCPUSpent {
			t.Errorf("the run ends with %v", p)
		}
	}()
	for range 100 {
		g.op("password.hash", `{"password":"x"}`)
	}
	t.Error("a hundred hashes in a millisecond")
}

// Several are under way at the same time, each in a slot.
func TestPasswordsAreHashedSideBySide(t *testing.T) {
	g := light(t, hostabi.Limits{})
	tickets := map[int32]bool{}
	for range 8 {
		tickets[g.do("call_start", "password.hash", `{"password":"x"}`)] = true
	}
	for range 8 {
		ticket := g.raw("call_wait")
		if !tickets[ticket] {
			t.Fatalf("call_wait returns %d", ticket)
		}
		delete(tickets, ticket)
		if n := g.raw("call_take", uint32(ticket)); n < 0 {
			t.Errorf("ticket %d: %d", ticket, n)
		}
	}
}

func TestAHandlerThatFloodsTheSlotsIsRefused(t *testing.T) {
	g := light(t, hostabi.Limits{})
	g.call.Host.LongWork = longwork.New(longwork.Options{Parallel: 1, QueueWait: time.Millisecond})
	hold, held := make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = g.call.Host.LongWork.Run(context.Background(), fairqueue.Parties{"other"}, func() error { close(held); <-hold; return nil })
	}()
	<-held
	result, n := g.op("password.hash", `{"password":"x"}`)
	if n != int32(abi.Unavailable) || !strings.Contains(fmt.Sprint(result["message"]), "[password] parallel") {
		t.Errorf("%d %v", n, result)
	}
	close(hold)
	if result, n := g.op("crypto.generateKey", `{"algorithm":{"name":"Ed25519"},"usages":["sign"]}`); n < 0 || result["privateKey"] == nil {
		t.Errorf("a key that needs no slot: %d %v", n, result)
	}
}

// A hash by the host, from the call of the guest to its result, divided by x/crypto alone.
func BenchmarkPassword(b *testing.B) {
	g := newGuest(b, hostabi.Limits{HostCalls: 1 << 30, MovedBytes: 1 << 40, CPU: time.Hour})
	salt := make([]byte, 16)
	arms.Alternate(b, 1, [2]string{"alone", "host"}, [2]func(){
		func() { argon2.IDKey([]byte("correct horse"), salt, 2, 19<<10, 1, 32) },
		func() {
			g.next = 1024
			if result, n := g.op("password.hash", `{"password":"correct horse"}`); n < 0 {
				b.Fatal(result)
			}
		},
	})
}
