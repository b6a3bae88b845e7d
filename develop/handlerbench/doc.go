// Package handlerbench measures what a request of one handler takes: time, memory, fuel and calls of
// the host.
package handlerbench
