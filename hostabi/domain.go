package hostabi

import "runner.example/internal/idn"

// domainUnits is the cost of a byte of a domain of usual length.
const domainUnits = 64

// domainToASCII converts the domain of a URL.
func domainToASCII(_ *Call, args *arguments) (any, error) {
	domain := args.text("domain")
	if err := args.end(); err != nil {
		return nil, err
	}
	if err := args.meter.Spend(domainUnits * len(domain)); err != nil {
		return nil, err
	}
	ascii, err := idn.ToASCII(domain)
	return struct {
		ASCII string `json:"ascii"`
	}{ascii}, err
}
