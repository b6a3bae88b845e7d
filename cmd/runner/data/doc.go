// Package data has the commands of `runner data`: operators' work on rows.
package data
