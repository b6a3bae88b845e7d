// Package fault names every way a request or a host call can fail: one closed
// list of codes, shared by HTTP answers, guests and logs.
//
// Which HTTP status a code becomes is known to runtime/front alone (and, for
// operators on the network, to admin), which errno to hostabi alone. A fault carries two texts: Detail may leave the
// process, the cause never does.
package fault
