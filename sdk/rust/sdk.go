package rust

import "embed"

// Crate is the crate, as it is laid beside an app.
//
//go:embed Cargo.toml LICENSE README.md src/*.rs
var Crate embed.FS
