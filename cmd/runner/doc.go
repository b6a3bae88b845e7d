// Command runner is the door of the house: it reads runner.toml, opens the
// rooms from the ground up, closes them in reverse, and lets operators work on
// an app, one file per command.
//
// stdout holds the answer and nothing else; everything else goes to stderr as
// "runner: …" lines. The exit status says what kind of failure it was, as the
// help text lists. What a command does to a node is done by package admin, in
// this process or, while a server runs, in that one.
//
// A token is printed once, by the command that made it, and by nothing else.
package main
