// Package rust holds the SDK for handlers written in Rust, which is the crate
// runner-sdk to them: its manifest and its sources.
//
// It is Go only so far that it can be embedded, to be laid beside an app.
package rust
