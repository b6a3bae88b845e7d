package assemblyscript

import "embed"

// Package is the npm package, as it is laid beside an app.
//
//go:embed LICENSE package.json README.md index.ts transform.mjs assembly/*.ts
var Package embed.FS
