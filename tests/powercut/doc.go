// Command powercut mounts a file system of a directory that forgets what was not synced:
//
//	powercut [-keep SEED] DISK LIVE MOUNT
//
// DISK has what a power cut leaves. At the start it is copied to LIVE, which has what programs see at MOUNT.
// A file's bytes reach DISK when the file is synced. Changes of names (new, renamed and removed files and
// directories) reach it in order, as by a journal: when a directory whose names change is synced, or a new
// file. Sizes that are set reach it at once.
//
// The process prints a line when the file system is mounted. To kill it is the power cut. With -keep
// SIGTERM is one too: a part of the pages that were not synced then reaches DISK, as a disk writes
// them in any order, and the first of the changes of names.
package main
