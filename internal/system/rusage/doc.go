// Package rusage reads what this process and its threads have used, as getrusage does.
//
//	                     Linux   macOS   Windows
//	CPU time, process    yes     yes     yes
//	CPU time, thread     yes     yes     no: its clock ticks 64 times a second
//	page faults, thread  yes     no      no
//
// All functions may be called by all goroutines. Those of a thread are for the thread that calls them: a goroutine may
// be on another one after each call, unless it is locked to its thread.
package rusage
