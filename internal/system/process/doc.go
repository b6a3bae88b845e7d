// Package process is what the operating system says of this process, and what it does for it: the limit of
// open files, signals, the permissions of new files.
//
//	                 Linux            macOS            Windows
//	open files       RLIMIT_NOFILE    RLIMIT_NOFILE    no limit that matters
//	stop             SIGINT, SIGTERM  SIGINT, SIGTERM  Ctrl-C, Ctrl-Break, closed console, shutdown
//	reload           SIGHUP           SIGHUP           only `runner reload`
//	new files        umask            umask            the access list of the directory
package process
