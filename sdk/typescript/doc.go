// Package typescript holds the SDK for handlers written in TypeScript, which is
// @runner/sdk to them. It has its sources, of which the runner makes a part of every
// module that it builds, and its declarations, for editors. So it does for
// @runner/test, which test files import.
//
// It is Go only so far that it can be embedded.
package typescript
