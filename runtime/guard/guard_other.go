//go:build !(patched && linux && amd64)

package guard

import (
	"context"
	"errors"
)

// Regions is the most that there are at a time.
const Regions = 1

var running [Regions]struct{ context uintptr }

// Take returns an error: the compiler of this program makes no code for guarded memories.
func Take(uint64) (*Region, error) {
	return nil, errors.New("the compiler makes code for guarded memories only on Linux and amd64, built by tools/go.sh")
}

// Available returns 0.
func Available() int { return 0 }

// Open returns nil: there are no regions.
func (r *Region) Open(_, _ uint64) error { return nil }

// Release ends the use of a region.
func (r *Region) Release() {}

// Compile returns the context.
func Compile(ctx context.Context) context.Context { return ctx }
