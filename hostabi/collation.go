package hostabi

import (
	"runner.example/internal/collation"
)

// collationUnits is the cost of an answer, which has up to 9 KB.
const collationUnits = 4 << 10

// collationAt returns the weights of a range of characters by which texts are ordered.
func collationAt(_ *Call, args *arguments) (any, error) {
	at, ok := args.optionalWhole("at")
	if !ok || at < 0 || at > 0x10ffff {
		args.wrong("member %q must be a code point, from 0 to 1114111", "at")
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	if err := args.meter.Spend(collationUnits); err != nil {
		return nil, err
	}
	return collation.At(rune(at)), nil
}
