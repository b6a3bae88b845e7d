// Package process is what the operating system says of this process, and what it does for it. It has the limit of
// open files, signals, the permissions of new files, what the process has used, and limits that it sets itself. It also
// runs lines of the system's shell.
//
//	                 Linux            macOS            Windows
//	open files       RLIMIT_NOFILE    RLIMIT_NOFILE    no limit that matters
//	stop             SIGINT, SIGTERM  SIGINT, SIGTERM  Ctrl-C, Ctrl-Break, closed console, shutdown
//	reload           SIGHUP           SIGHUP           only `runner reload`
//	new files        umask            umask            the access list of the directory
//	CPU time         process, thread  process, thread  process: a thread's clock ticks 64 times a second
//	page faults      thread           no               no
//	limits of itself CPU time, memory no               no
//
// All functions may be called by all goroutines. Those of a thread are for the thread that calls them: a goroutine may
// be on another one after each call, unless it is locked to its thread.
package process
