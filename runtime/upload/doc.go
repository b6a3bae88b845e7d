// Package upload reads the body of a request that uploads files: multipart/form-data (RFC 7578), or the bytes of one
// file. It reads the body as it arrives.
//
// Fields are kept in memory, up to a limit. The contents of files go to a Put in pieces. So the memory for a body does not
// depend on its length. The number of parts and the length of their headers are limited too, and the work for each byte
// is constant.
//
// Package fileinfo decides the name and the type of a file. The type that the client declares is only reported.
package upload
