// Package system is the folder of what differs between operating systems. Each package below it has
// one contract, and a file for each system that fulfils it:
//
//	x.go          what is the same everywhere
//	x_unix.go     Linux and macOS
//	x_linux.go    Linux
//	x_darwin.go   macOS
//	x_windows.go  Windows
//
// Other packages have no such files and do not ask which system they run on. Servers run on Linux;
// macOS and Windows are for authors of apps. So on Linux nothing is given up for the others, and
// the contracts say what is weaker there.
package system
