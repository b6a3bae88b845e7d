// Package release keeps the releases of an app: which files each has, and which one is active.
//
// A release is a manifest: the name of the app, and its schema files, modules and their debug files with
// their sizes and digests. Its id is made from these, so equal files are one release on every node, and a
// release never changes. The contents are blobs of the store, which releases share.
//
// The files that a module has are a tree (see package tree): the manifest names its listing, and the contents are blobs
// too. A node that serves a release has all of them.
//
// A release can have signatures. They are in its record and not in the manifest, so a signature does
// not change the id. TrustedKeys says whose signatures a node needs.
//
// # Keys
//
//	release/record/<id>   a Release, JSON
//	release/active        a Pointer, JSON
//
// # Order of writing
//
//	blobs ─► Add: the record, if every blob is there ─► Activate: the pointer, in the
//	                                                    transaction that changes the schema of the rows
//
// So the pointer names a record, and a record names blobs that exist. Sweep goes the other way: it
// deletes records, then the blobs that no record and no listing names and that are an hour old. A blob that an
// upload has just written is younger. While Add compares blobs with a manifest, none is deleted.
package release
