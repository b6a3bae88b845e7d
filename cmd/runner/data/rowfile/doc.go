// Package rowfile reads and writes rows in files: JSON lines and CSV (RFC 4180).
package rowfile
