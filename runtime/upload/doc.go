// Package upload reads the body of a request that uploads files, as it arrives: multipart/form-data (RFC 7578), or the
// bytes of one file.
//
// Texts are kept in memory, and are limited together with the heads of the parts. The contents of files go to a Put, a
// part at a time, and are never in memory as a whole. So the memory of a body does not depend on its length. The number of parts
// and the length of each head are limited, and the work for each byte is constant.
//
// Files have the names and the types of package fileinfo. What the client declares is only reported.
package upload
