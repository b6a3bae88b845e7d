// Package cost counts what the host computes for one request, so that its loops end
// when the request has had its processor time, and others get the processor meanwhile.
//
// Loops over what a client or a handler sends tell a Meter how much work they are
// about to do. Once in a while the Meter asks its owner, who knows the clock, the
// budget and who else waits. The package itself knows none of them.
package cost
