// Package recording records a run of a handler, and replays it. A Recording has the request, the host calls with their
// answers in order, and the random bytes and clock readings of the run.
//
// A Recorder collects the host calls of a run. It copies bytes and encodes nothing, so a run whose Recording is
// discarded costs little. Draws give a run its random bytes and clock readings: they record them, or repeat recorded
// ones. A Player answers host calls from a Recording, and detects a call that differs from the recorded one: a
// Divergence.
//
// Hide replaces secrets and credentials in a Recording by their names. In a replay the guest reads the secrets of its
// own node, and in place of a credential a text of the same length.
//
// The package does not read or write files, and does not depend on how guests run.
package recording
