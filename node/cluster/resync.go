package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"runner.example/internal/fault"
	"runner.example/internal/system/disk"
	"runner.example/node/backup"
	"runner.example/state/store/datadir"
)

// storeFiles are what a backup has of a data directory; the blobs are added to those that the node
// has.
var storeFiles = []string{"badger", "commit-mark"}

// Resync replaces the rows of a node whose store is closed, and lags so far behind that the log no
// longer has what it lacks, by those of another node. A crash leaves the old ones, or is completed by
// the next Start.
func (n *Node) Resync(ctx context.Context) error {
	target := files(n.data, snapshotName)
	var failures []error
	for _, p := range n.peers() {
		n.logger.Info("resync started: log truncated", "from", p.Name)
		err := receiveSnapshot(ctx, n.peerClient, p.Address, nil, backup.RestoreOptions{
			Dir: target, Pepper: n.pepper, KeepPepper: true,
		})
		if err == nil {
			return completeResync(n.data)
		}
		failures = append(failures, err)
	}
	if len(failures) == 0 {
		return fault.New(fault.Unavailable,
			"the node %q lags so far behind that it needs a backup of another node, and knows none", n.id.Name)
	}
	return errors.Join(failures...)
}

// completeResync moves a received backup into place. The last step removes it, so a
// crash in between is repaired by doing it again.
func completeResync(data string) error {
	from := files(data, snapshotName)
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := datadir.Acquire(data)
	if err != nil {
		return err
	}
	defer lock.Release()
	for _, name := range storeFiles {
		source, target := filepath.Join(from, name), filepath.Join(data, name)
		if _, err := os.Lstat(source); errors.Is(err, fs.ErrNotExist) {
			continue // it was moved before a crash
		}
		if err := os.RemoveAll(target); err != nil {
			return err
		}
		if err := os.Rename(source, target); err != nil {
			return err
		}
		if err := disk.SyncDir(data); err != nil {
			return err
		}
	}
	blobs := filepath.Join(from, "blobs")
	entries, err := os.ReadDir(blobs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(blobs, e.Name()), filepath.Join(data, "blobs", e.Name())); err != nil {
			return fmt.Errorf("move a blob of the backup: %w", err)
		}
	}
	if err := os.RemoveAll(from); err != nil {
		return err
	}
	return disk.SyncDir(data)
}
