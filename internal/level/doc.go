// Package level says which levels of the stored data this program knows.
//
// One level covers the format of the log's entries, the rules that decide commits, and the format of
// each record that nodes of a cluster share. The level in force is a record of the store, which
// package state/store reads and changes. All nodes change at the same entry of the log.
//
// A release that changes one of these formats or rules knows one level more. It writes what the level
// in force says, and the new form only after an operator has raised the level. It reads the forms of
// all levels that it knows.
package level
