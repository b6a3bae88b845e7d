// Package cli is what the commands of the command line share: the global flags, the app and the
// node that they name, checks of arguments, and completion.
package cli
