// Package abi is what a guest and the host agree on: the functions a module may
// import from "runner", the operations of its call, the numbers errors come
// back as, and the request and response that both sides mean.
//
// The tables here are the only place where these are written down: the host
// binds its functions by them, and the generator in gen writes the tables of
// docs/abi.md and the constants of the SDKs from them. Within one version there
// are only additions.
//
// Nothing happens here: no function runs, no memory is read. The room stands on
// the ground floor so that everybody can speak of a request without knowing how
// it came or who serves it.
package abi

//go:generate go run ./gen
