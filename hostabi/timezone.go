package hostabi

import "runner.example/internal/timezone"

// zoneUnits is the cost of a look-up in the data of a zone. The first one of each zone reads
// the data, which takes some 50 µs.
const zoneUnits = 1 << 10

// timeZone answers the offset of a time zone at an instant, and how long it holds.
func timeZone(_ *Call, args *arguments) (any, error) {
	zone := args.text("zone")
	at, ok := args.optionalWhole("at")
	if !ok {
		args.wrong("member %q is missing", "at")
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	if err := args.meter.Spend(zoneUnits); err != nil {
		return nil, err
	}
	return timezone.At(zone, at)
}
