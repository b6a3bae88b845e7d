package idn

import (
	"golang.org/x/net/idna"

	"runner.example/internal/fault"
)

// MaxBytes is the length of the longest domain that ToASCII accepts. A name that can be
// resolved is shorter, and the time of Punycode is quadratic in the length of a label.
const MaxBytes = 1 << 10

var profile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(),
	idna.CheckHyphens(false), idna.StrictDomainName(false), idna.VerifyDNSLength(false))

// ToASCII returns a domain in ASCII: "bücher.example" is "xn--bcher-kva.example". It is safe
// for concurrent use.
func ToASCII(domain string) (string, error) {
	if len(domain) > MaxBytes {
		return "", fault.New(fault.TooLarge, "the domain has %d bytes; the limit is %d", len(domain), MaxBytes)
	}
	ascii, err := profile.ToASCII(domain)
	if err != nil || ascii == "" {
		return "", fault.New(fault.Invalid, "%.100q is not a valid domain", domain)
	}
	return ascii, nil
}
