// Package fileinfo reads what a system says of a file beyond io/fs.
package fileinfo
