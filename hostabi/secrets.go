package hostabi

import "runner.example/internal/fault"

// readSecret gives the value of a declared secret. What is configured but not
// declared cannot be read.
func readSecret(c *Call, args *arguments) (any, error) {
	name := args.text("name")
	if err := args.end(); err != nil {
		return nil, err
	}
	value, ok := c.Host.Secrets.Get(name)
	if !ok {
		return nil, fault.New(fault.Denied, "%q is not declared (add `secret %s` to the schema)", name, name)
	}
	return struct {
		Value string `json:"value"`
	}{value.Reveal()}, nil
}
