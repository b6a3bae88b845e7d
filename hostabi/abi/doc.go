// Package abi defines the interface of guests and host: the functions that a module may
// import from "runner", the operations of its call, the errnos, and the types of a request
// and a response.
//
// The tables here are the only place where these are written down: the host
// binds its functions by them, and the generator in gen writes the tables of
// docs/abi and the constants of the SDKs from them. Within one version there
// are only additions.
//
// The package implements none of it. It is in the lowest layer, so that every package can
// use Request and Response.
package abi

//go:generate go run ./gen
