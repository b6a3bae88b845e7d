//go:build !wasip1

package runner

import "embed"

// Source holds the files of this module: `runner new` lays them beside an app, as
// the module is published nowhere. Handlers have no use for it, and no module has
// it inside.
//
//go:embed LICENSE README.md go.mod *.go internal runnerhttp runnertest
var Source embed.FS
