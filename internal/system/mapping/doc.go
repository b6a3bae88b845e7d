// Package mapping changes the memory in which another part of the program has mapped a file.
//
//	          Linux   macOS                 Windows
//	Replace   yes     errors.ErrUnsupported errors.ErrUnsupported
//	Release   yes     yes                   does nothing
package mapping
