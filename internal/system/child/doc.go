// Package child limits a process that this program starts from itself. Only Linux has all of the limits, and the kernel
// that keeps them.
package child
