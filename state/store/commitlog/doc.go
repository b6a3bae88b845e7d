// Package commitlog has what decides commits: the entries of a store's log with the writes in
// them, and the window of what the newest entries wrote.
//
// A verdict depends on the entries alone, so every node that applies them decides the same. The
// package reads no clock, no randomness and no files, and the order of a map has no effect.
package commitlog
