package hostabi

import (
	"errors"

	"runner.example/internal/charset"
)

// decodeUnits is the cost of a byte of text in a legacy encoding, which takes about 10 ns.
const decodeUnits = 8

// decodeText decodes a piece of text in a legacy encoding. The guest passes the state from one piece to the next.
func decodeText(_ *Call, args *arguments) (any, error) {
	label := args.text("encoding")
	data := args.data("data")
	state, _ := args.optionalText("state")
	more, fatal := args.optionalBool("more"), args.optionalBool("fatal")
	if err := args.end(); err != nil {
		return nil, err
	}
	if err := args.meter.Spend(decodeUnits * len(data)); err != nil {
		return nil, err
	}
	result, err := charset.DecodeLabel(label, data, state, more, fatal)
	switch {
	case errors.Is(err, charset.ErrLabel):
		return nil, invalid("%q is not the label of an encoding that the host decodes", shorten(label))
	case errors.Is(err, charset.ErrState):
		return nil, invalid("member %q is not valid for this encoding: pass the state of the last result", "state")
	}
	return result, err
}
