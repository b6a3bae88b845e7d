// Package report collects what is wrong in the schema files of an app while they are checked, and
// reads the values of settings. It leaves out what may only follow from another error: a part of a
// file that could not be read, or a variable without a value.
package report
