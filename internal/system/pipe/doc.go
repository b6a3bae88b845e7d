// Package pipe writes to pipes without waiting for their readers, where the system can.
package pipe
