// Package node is a running server: it opens the store, the keystore, the audit, the runtime and
// the admin socket of an app in order, serves until a signal, reloads, and closes everything in
// reverse order.
package node
