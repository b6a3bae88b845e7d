// Package apptest runs the tests of an app: `runner test`.
//
// A test file is built into a module that runs in a sandbox, like handlers. Its host answers one more operation,
// "test" (see session), with which it sends requests, reads rows and moves the time. What a test talks to is an environment:
// the app's own runtime with its front, on a store in memory.
//
//	app ──Activate──► environment of the app
//	                    │ fork
//	                    ▼
//	                  environment of a file: beforeAll
//	                    │ fork, for each test
//	                    ▼
//	                  environment of a test
//
// A fork costs less than a millisecond: the store is a copy on write (store.Store.Fork), and the modules, their images
// and their compiled code are shared (runtime.Runtime.Fork). Keys, sessions, limits and jobs are new in each.
//
// Connections are pipes in memory and need no port. Each environment has its own calendar. It stands still until the
// test moves it: see calendar.
package apptest
