// Package deadline has a context that ends at an instant and starts a timer only when something
// waits for it. Most requests are done before anything does.
package deadline
