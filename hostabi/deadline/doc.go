// Package deadline has a context that ends at an instant and starts a timer only when it is waited
// for: most requests end before anything waits for their deadline.
package deadline
