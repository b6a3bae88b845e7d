// Package assets finds the file that answers a request for a directory of assets, and makes its compressed forms.
//
// A Site is the table of one directory in one release: paths of URLs to files. It is made once, from the listing of the
// release, so no request reaches a file system by its path. What differs between files of one site is computed when the
// table is made: types, headers, ETags.
//
// A Cache makes the compressed forms of files in the background, and keeps them in a directory by the digests of their
// contents. They do not belong to a release: its id and its signatures cover what the app has. A file without a
// compressed form is sent as it is.
//
// The package does not speak HTTP: runtime/content evaluates conditions and ranges, and package front sends.
package assets
