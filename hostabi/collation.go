package hostabi

import (
	"runner.example/internal/collation"
)

// collationUnits is the cost of an answer, whose size is up to 9 KB.
const collationUnits = 4 << 10

// collationAt returns the collation weights of a range of code points.
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
