//go:build patched

package capture

import (
	"context"
	"fmt"
	"runtime"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	_ "runner.example/internal/wazerofix"
)

// Capture is a captured call of one instance. It keeps the instance reachable, but not open, and never changes. Any
// goroutine can use it.
type Capture struct{ of experimental.CallCapture }

// State is where a call continues. It refers to the compiled module, and to no instance. It never changes, and any
// number of goroutines can use it at a time.
type State struct{ of experimental.CallState }

// Available reports whether this runner can capture calls.
func Available() bool { return runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64" }

// Call calls a function without parameters and results so that Take can capture it. It ends as fn.Call does. It is for
// the goroutine that may call fn.
func Call(ctx context.Context, fn api.Function) error {
	f, err := capturable(fn)
	if err != nil {
		return err
	}
	return f.CallCapturable(ctx)
}

// Take captures a running Call. It must be called by a host function that the program has called, with the function
// that was given to Call, and on its goroutine. The call goes on unchanged, and can be captured again.
//
// It is an error if
//
//   - the program was not started by Call, or the function is that of another module's frame,
//   - the host function belongs to a call that is nested in another one, or has another one nested in it,
//   - the program is within a try_table,
//   - the module has a shared memory or function listeners, or
//   - the interpreter runs it.
func Take(fn api.Function) (*Capture, error) {
	f, err := capturable(fn)
	if err != nil {
		return nil, err
	}
	of, err := f.Capture()
	if err != nil {
		return nil, err
	}
	return &Capture{of}, nil
}

// Compare compares the captures of two instances of a compiled module, and returns where any instance of it can
// continue. Both instances must stay open until then. The error names up to eight words in which the captures differ
// beyond the addresses that the engine knows: the instances did not do the same.
func Compare(a, b *Capture) (*State, error) {
	of, err := a.of.Compare(b.of)
	if err != nil {
		return nil, err
	}
	return &State{of}, nil
}

// Resume calls fn, which continues where it was captured, as if the captured host function had returned the results:
// one for each that it has. fn is the captured function of any instance of the same compiled module, with the same
// imports, and the memory, globals and tables of the captured instance at that time.
//
// It ends as fn.Call does: when the program returns, traps, or a host function panics, for example with a
// *sys.ExitError. After each end, fn can be called or resumed again. It is an error if fn is of another module or
// index, if it is running, or if its instance is closed.
//
// fn keeps the stack from call to call, and Resume allocates only until that is large enough. A stack that has grown
// beyond 1 MiB and beyond four times what the capture needs is replaced by a new one.
//
// Resume is for the goroutine that may call fn. Different functions can be resumed at the same time.
func (s *State) Resume(ctx context.Context, fn api.Function, results []uint64) error {
	f, err := capturable(fn)
	if err != nil {
		return err
	}
	return f.Resume(ctx, s.of, results)
}

// Size returns what the state consists of.
func (s *State) Size() Size {
	replaced, dead := s.of.Words()
	return Size{Stack: s.of.StackBytes(), Frames: s.of.Frames(), Replaced: replaced, Dead: dead}
}

func capturable(fn api.Function) (experimental.CapturableFunction, error) {
	if !Available() {
		return nil, ErrUnavailable
	}
	if f, ok := fn.(experimental.CapturableFunction); ok {
		return f, nil
	}
	return nil, fmt.Errorf("capture a call: a function of type %T is not compiled code", fn)
}
