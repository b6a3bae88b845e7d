package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"runner.example/runtime/front"
)

// setting is one key of runner.toml and the place its value goes to.
type setting struct {
	section, key string
	value        value
}

// name is how messages call the setting.
func (s setting) name() string { return "[" + s.section + "] " + s.key }

// variable is the environment variable that overrides the setting.
func (s setting) variable() string {
	return "RUNNER_" + strings.ToUpper(s.section) + "_" + strings.ToUpper(s.key)
}

// value reads one setting, from the file or from the environment. An error
// says what is expected, without the name of the key.
type value interface {
	fromTOML(v any) error
	fromText(s string) error
}

// text is any string, checked when check is set.
type text struct {
	to    *string
	check func(string) error
}

func (v text) fromTOML(in any) error {
	s, ok := in.(string)
	if !ok {
		return wrongType("a string in quotes", in)
	}
	return v.fromText(s)
}

func (v text) fromText(s string) error {
	if v.check != nil {
		if err := v.check(s); err != nil {
			return err
		}
	}
	*v.to = s
	return nil
}

// list is an array of strings, separated by commas in the environment.
type list struct {
	to    *[]string
	check func(string) error
}

func (v list) fromTOML(in any) error {
	raw, ok := in.([]any)
	if !ok {
		return wrongType(`a list of strings, such as ["a", "b"]`, in)
	}
	var all []string
	var bad []error
	for _, item := range raw {
		if s, ok := item.(string); ok {
			all = append(all, s)
		} else {
			bad = append(bad, wrongType("a list of strings", item))
		}
	}
	return v.set(all, bad)
}

func (v list) fromText(s string) error {
	var all []string
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			all = append(all, item)
		}
	}
	return v.set(all, nil)
}

// set takes all items unless one of them is wrong, or bad has something.
func (v list) set(all []string, bad []error) error {
	for _, item := range all {
		if err := v.check(item); err != nil {
			bad = append(bad, err)
		}
	}
	if len(bad) == 0 {
		*v.to = all
	}
	return errors.Join(bad...)
}

// count is a whole number from min to max.
type count struct {
	to       *int
	min, max int
}

func (v count) fromTOML(in any) error {
	n, ok := in.(int64)
	if !ok {
		return wrongType("a whole number", in)
	}
	if n < int64(v.min) || n > int64(v.max) {
		return fmt.Errorf("%d is outside %s", n, bounds(v.min, v.max))
	}
	*v.to = int(n)
	return nil
}

func (v count) fromText(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not a whole number", s)
	}
	return v.fromTOML(n)
}

func bounds(low, high int) string {
	return fmt.Sprintf("%d..%d", low, high)
}

// flag is true or false.
type flag struct{ to *bool }

func (v flag) fromTOML(in any) error {
	b, ok := in.(bool)
	if !ok {
		return wrongType("true or false", in)
	}
	*v.to = b
	return nil
}

func (v flag) fromText(s string) error {
	switch s {
	case "true", "false":
		*v.to = s == "true"
		return nil
	}
	return fmt.Errorf("expected true or false, found %q", s)
}

// duration is a length of time of at least min and, when max is set, at most
// max.
type duration struct {
	to       *time.Duration
	min, max time.Duration
}

func (v duration) fromTOML(in any) error {
	s, ok := in.(string)
	if !ok {
		return wrongType(`a duration in quotes, such as "30s"`, in)
	}
	return v.fromText(s)
}

func (v duration) fromText(s string) error {
	d, err := parseDuration(s, fileDurations)
	switch {
	case err != nil:
		return err
	case d < v.min:
		return fmt.Errorf("%s is too short: it must be at least %s", s, formatDuration(v.min))
	case v.max > 0 && d > v.max:
		return fmt.Errorf("%s is too long: it must be at most %s", s, formatDuration(v.max))
	}
	*v.to = d
	return nil
}

// size is a number of bytes from min to max.
type size struct {
	to       *int64
	min, max int64
}

func (v size) fromTOML(in any) error {
	s, ok := in.(string)
	if !ok {
		return wrongType(`a size in quotes, such as "64kb"`, in)
	}
	return v.fromText(s)
}

func (v size) fromText(s string) error {
	n, err := parseSize(s)
	switch {
	case err != nil:
		return err
	case n < v.min:
		return fmt.Errorf("%s is too small: it must be at least %s", s, formatSize(v.min))
	case n > v.max:
		return fmt.Errorf("%s is too large: it must be at most %s", s, formatSize(v.max))
	}
	*v.to = n
	return nil
}

// pages is a size of memory, which WebAssembly deals out in pages of 64 KiB.
type pages struct{ to *int64 }

func (v pages) fromTOML(in any) error {
	s, ok := in.(string)
	if !ok {
		return wrongType(`a size in quotes, such as "64mb"`, in)
	}
	return v.fromText(s)
}

func (v pages) fromText(s string) error {
	const page = 64 * kb
	var n int64
	if err := (size{&n, page, 4 << 30}).fromText(s); err != nil {
		return err
	}
	if n%page != 0 {
		return fmt.Errorf("%s is not a multiple of 64kb, the size of a page of memory", s)
	}
	*v.to = n
	return nil
}

// oneOf checks that a text is one of words.
func oneOf(words ...string) func(string) error {
	return func(s string) error {
		if slices.Contains(words, s) {
			return nil
		}
		return fmt.Errorf("expected %s or %s, found %q", strings.Join(words[:len(words)-1], ", "), words[len(words)-1], s)
	}
}

// checkListen checks an address to listen on.
func checkListen(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is not an address to listen on: write host:port, such as 127.0.0.1:8080", s)
	}
	return nil
}

func checkHost(s string) error {
	if !front.ValidHost([]byte(s)) {
		return fmt.Errorf("%q is not a host name: write it as in the Host header, such as api.example.com", s)
	}
	return nil
}

func checkPrefix(s string) error {
	if _, err := parsePrefix(s); err != nil {
		return fmt.Errorf("%q is not a network: write it as 10.0.0.0/8, or a single address", s)
	}
	return nil
}

// parsePrefix reads a network, or one address as the network of it alone.
func parsePrefix(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Prefix(addr.BitLen())
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}

func notEmpty(s string) error {
	if s == "" {
		return errors.New("it must not be empty")
	}
	return nil
}

func wrongType(want string, found any) error {
	what := "a table"
	switch v := found.(type) {
	case string:
		what = "a string"
	case int64:
		what = fmt.Sprintf("the number %d", v)
	case float64:
		what = fmt.Sprintf("the number %v", v)
	case bool:
		what = fmt.Sprintf("%t", v)
	case time.Time:
		what = "a date"
	case []any:
		what = "a list"
	}
	return fmt.Errorf("expected %s, found %s", want, what)
}
