// Package version reads the version of this program from its build information.
package version
