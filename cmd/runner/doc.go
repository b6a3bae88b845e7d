// Command runner is the command line: it reads runner.toml, opens the packages from the
// lowest layer up and closes them in reverse order. Each subcommand has a file.
//
// The answer goes to stdout; everything else goes to stderr, as lines "runner: …". The
// help lists the exit statuses. Package admin does what a command does to a node: in this
// process, or in the server while one runs.
//
// A token is printed once, by the command that created it.
package main
