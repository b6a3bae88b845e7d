package router

import "strings"

// The methods a route may have, in the order of an Allow header.
const (
	get = iota
	head
	post
	put
	patch
	del
	options
	methods
)

var methodNames = [methods]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// Any is the method of a route for GET, HEAD, POST, PUT, PATCH and DELETE. A route for one of them comes before it.
const Any = "ANY"

// anyOf are the methods of Any. The one for GET serves HEAD.
var anyOf = []int{get, post, put, patch, del}

// methodOf returns the index of a method in methodNames, -1 for any other method.
func methodOf(name []byte) int {
	for i, m := range methodNames {
		if string(name) == m {
			return i
		}
	}
	return -1
}

// allowText lists the methods of a path that has routes of the methods in set: with GET
// also HEAD, and always OPTIONS.
func allowText(set int) string {
	set |= 1 << options
	if set&(1<<get) != 0 {
		set |= 1 << head
	}
	var names []string
	for i, name := range methodNames {
		if set&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
