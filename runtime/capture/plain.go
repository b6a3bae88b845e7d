//go:build !patched

package capture

import (
	"context"

	"github.com/tetratelabs/wazero/api"

	_ "runner.example/internal/wazerofix"
)

// Capture is a captured call of one instance.
type Capture struct{}

// State is where a call continues.
type State struct{}

// Available returns false: this runner was built without the patches.
func Available() bool { return false }

// Call returns ErrUnavailable.
func Call(context.Context, api.Function) error { return ErrUnavailable }

// Take returns ErrUnavailable.
func Take(api.Function) (*Capture, error) { return nil, ErrUnavailable }

// Compare returns ErrUnavailable.
func Compare(_, _ *Capture) (*State, error) { return nil, ErrUnavailable }

// Resume returns ErrUnavailable.
func (s *State) Resume(context.Context, api.Function, []uint64) error { return ErrUnavailable }

// Size returns the zero value.
func (s *State) Size() Size { return Size{} }
