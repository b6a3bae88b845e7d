// Package toolchaintest lets tests build apps and run their modules.
//
// What is compiled is kept: the JavaScript engine that builds in the user's cache, for all runs, and
// the code of modules for all tests of a process.
package toolchaintest
