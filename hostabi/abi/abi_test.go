package abi_test

import (
	"regexp"
	"testing"

	"runner.example/hostabi/abi"
)

func TestErrnosCountDownFromMinusOneWithoutAGap(t *testing.T) {
	names := map[string]bool{}
	for i, e := range abi.Errnos() {
		if want := abi.Errno(-1 - i); e.Errno != want || e.Errno.String() != e.Name || e.Doc == "" {
			t.Errorf("errno %d is %d %q (%q), want %d with a name and a meaning", i, e.Errno, e.Name, e.Errno, want)
		}
		if names[e.Name] {
			t.Errorf("the name %q stands twice", e.Name)
		}
		names[e.Name] = true
	}
	if got := abi.Errno(-100).String(); got != "internal" {
		t.Errorf("an unknown errno reads %q, want internal", got)
	}
}

func TestNamesOfFunctionsAndOperationsAreUniqueAndWellFormed(t *testing.T) {
	seen := map[string]bool{}
	check := func(name, doc string, form *regexp.Regexp) {
		if seen[name] || doc == "" || !form.MatchString(name) {
			t.Errorf("%q: twice %v, explained %q", name, seen[name], doc)
		}
		seen[name] = true
	}
	for _, f := range abi.Functions() {
		check(f.Name, f.Doc, regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`))
	}
	for _, op := range abi.Ops() {
		check(op.Name, op.Args+op.Result, regexp.MustCompile(`^[a-zA-Z]+(\.[a-z][a-zA-Z]*)?$`))
	}
}

func TestAHeaderIsCopiedAndClearedByReset(t *testing.T) {
	var r abi.Response
	name, value := []byte("x-a"), []byte("one")
	for range 100 { // enough to move the bytes more than once
		r.AddHeader(name, value)
	}
	copy(name, "???")
	copy(value, "???")
	for i, h := range r.Headers {
		if string(h.Name) != "x-a" || string(h.Value) != "one" {
			t.Fatalf("header %d reads %s: %s after the caller reused its buffers", i, h.Name, h.Value)
		}
	}
	if r.HeaderSize() != 600 {
		t.Errorf("size of all headers is %d, want 600", r.HeaderSize())
	}
	r.Status, r.Code, r.Detail, r.Body = 404, "not_found", "gone", []byte("x")
	r.Reset()
	if r.Status != 0 || r.Code != "" || r.Detail != "" || len(r.Headers) != 0 || len(r.Body) != 0 || r.HeaderSize() != 0 {
		t.Errorf("after Reset: %+v", r)
	}
}
