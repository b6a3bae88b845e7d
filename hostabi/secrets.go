package hostabi

import (
	"runner.example/internal/fault"
	"runner.example/internal/secret"
)

// readSecret returns the value of a declared secret.
func readSecret(c *Call, args *arguments) (any, error) {
	name := args.text("name")
	if err := args.end(); err != nil {
		return nil, err
	}
	value, err := c.secret(name)
	if err != nil {
		return nil, err
	}
	return struct {
		Value string `json:"value"`
	}{value.Reveal()}, nil
}

// readVar returns the value of a declared variable.
func readVar(c *Call, args *arguments) (any, error) {
	name := args.text("name")
	if err := args.end(); err != nil {
		return nil, err
	}
	return c.Host.Schema.ReadVar(shorten(name))
}

// secret returns a declared secret. One that is configured but not declared is denied.
func (c *Call) secret(name string) (secret.Text, error) {
	value, ok := c.Host.Secrets.Get(name)
	if !ok {
		shown := shorten(name)
		return value, fault.New(fault.Denied, "%q is not declared (add `secret %s` to the schema)", shown, shown)
	}
	return value, nil
}
