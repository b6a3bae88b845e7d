package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"runner.example/internal/system/disk"
)

// nodeName is the file that says that the data directory belongs to a node of a cluster.
const nodeName = "cluster-node"

const nodeText = "This data directory belongs to a node of a cluster. Do not remove this file:\nchanges that the other nodes do not know would be lost.\n"

// IsNode reports whether dir belongs to a node of a cluster.
func IsNode(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, nodeName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// SetNode records durably whether dir belongs to a node of a cluster.
func SetNode(dir string, node bool) error {
	path := filepath.Join(dir, nodeName)
	if !node {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return disk.SyncDir(dir)
	}
	if err := os.WriteFile(path, []byte(nodeText), 0o600); err != nil {
		return err
	}
	return disk.SyncDir(dir)
}
