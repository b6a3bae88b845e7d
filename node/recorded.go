package node

import (
	"log/slog"
	"path/filepath"

	"runner.example/keystore"
	"runner.example/node/app"
	"runner.example/runtime/recorded"
)

// openRecorded opens the recordings of the node of an app.
func openRecorded(a *app.App, opt recorded.Options, keys *keystore.Keystore, logger *slog.Logger) *recorded.Keeper {
	opt.Dir, opt.Key, opt.Logger = filepath.Join(a.Data, "recorded"), keys.Derive("recordings"), logger
	return recorded.Open(opt)
}
