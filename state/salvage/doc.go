// Package salvage writes the readable rows of a damaged store to an archive.
package salvage
