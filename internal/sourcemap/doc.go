// Package sourcemap reads the mappings of source maps (ECMA-426).
//
// Mappings are lines of the generated text separated by ";", segments by ",", and numbers in
// base64 VLQ, each the difference to the previous one:
//
//	column (from 0 in each line) · source · line · column · name
//
// A segment that is not valid is skipped. The package reads no files and no URLs. All functions
// depend only on their input, and may be called from any goroutine.
package sourcemap
