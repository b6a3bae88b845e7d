// Package cost counts what the host computes for one request, so that its loops end
// when the request has used up its CPU time, and yield to other requests before.
//
// A loop over input of a client or a handler reports to a Meter how much work it is
// about to do. From time to time the Meter calls its owner, which knows the clock, the
// budget and the other requests. This package knows none of them.
package cost
