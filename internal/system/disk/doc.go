// Package disk does with files, directories and file systems what package os does not do, or not
// in the same way on every system.
//
// # Durability
//
// os.File.Sync writes a file to the disk on every system, the disk's own cache included. SyncData
// is cheaper on Linux. SyncDir makes the names in a directory durable.
//
// # Open files on Windows
//
// Unix removes and renames files that are open. Windows refuses it, unless each of the handles was
// opened for that. Open opens files so; those of package os are not, except for the files that an
// os.Root opens. So a file that another goroutine or process may remove or replace is opened with
// Open, and replaced with Rename. The name of a removed file is free when the last handle is closed, on
// NTFS at once.
//
// # Permissions
//
// A private file or directory is for its owner alone: its mode on Unix, its access control list on
// Windows, where the system and the administrators are always on the list.
package disk
