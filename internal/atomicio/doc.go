// Package atomicio replaces files in one step.
package atomicio
