package hostabi

import "runner.example/internal/timezone"

// zoneUnits is the cost of a lookup in the data of a zone. The first lookup in each zone
// reads the data, which takes about 50 µs.
const zoneUnits = 1 << 10

// timeZone returns the offset of a time zone at an instant, and the period in which it is
// valid.
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
