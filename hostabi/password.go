package hostabi

import (
	"context"
	"encoding/json"
	"time"

	"runner.example/internal/cost"
)

// hashPassword hashes a password with a new salt.
func hashPassword(c *Call, text []byte) (work, error) {
	args, err := readArguments(text, &c.work)
	if err != nil {
		return nil, err
	}
	plain := args.text("password")
	if err := args.end(); err != nil {
		return nil, err
	}
	opt := c.Host.Passwords
	return c.longWork(func(context.Context) ([]byte, error) {
		return json.Marshal(struct {
			Hash string `json:"hash"`
		}{opt.Hash(plain)})
	}), nil
}

// verifyPassword compares a password with a hash. Without a hash it takes as long as with a new one, and
// the password is not valid.
func verifyPassword(c *Call, text []byte) (work, error) {
	args, err := readArguments(text, &c.work)
	if err != nil {
		return nil, err
	}
	plain := args.text("password")
	hash, known := args.optionalText("hash")
	if err := args.end(); err != nil {
		return nil, err
	}
	hashed := c.Host.Passwords.Unknown()
	if known {
		if hashed, err = c.Host.Passwords.Parse(hash); err != nil {
			return nil, err
		}
	}
	return c.longWork(func(ctx context.Context) ([]byte, error) {
		var m cost.Meter
		m.Reset(ctx.Err)
		verdict, err := hashed.Verify(plain, &m)
		if err != nil {
			return nil, err
		}
		return json.Marshal(verdict)
	}), nil
}

// maxKeyBytes limits the key that scrypt derives.
const maxKeyBytes = 1024

// derivePassword derives a key from a password with scrypt (RFC 7914).
func derivePassword(c *Call, text []byte) (work, error) {
	args, err := readArguments(text, &c.work)
	if err != nil {
		return nil, err
	}
	plain, salt := args.data("password"), args.data("salt")
	var n [4]int64
	for i, name := range []string{"n", "r", "p", "length"} {
		var given bool
		if n[i], given = args.optionalWhole(name); !given {
			args.wrong("member %q is missing", name)
		}
	}
	if n[3] < 1 || n[3] > maxKeyBytes {
		args.wrong("member %q must be from 1 to 1024", "length")
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	derive, err := c.Host.Passwords.Scrypt(salt, n[0], n[1], n[2], int(n[3]))
	if err != nil {
		return nil, err
	}
	return c.longWork(func(context.Context) ([]byte, error) {
		key, err := derive(plain)
		if err != nil {
			return nil, err
		}
		return json.Marshal(struct {
			Base64 []byte `json:"base64"`
		}{key})
	}), nil
}

// longWork is work that computes for long. It waits for a slot, which handlers and callers share. Its
// time counts as CPU time of the request, once the guest takes the result or the run ends.
func (c *Call) longWork(compute func(context.Context) ([]byte, error)) work {
	slots, parties, pending := c.Host.LongWork, c.parties(), c.pendingOps()
	return func(ctx context.Context) (answer, error) {
		var text []byte
		took, err := slots.Run(ctx, parties, func() (err error) {
			text, err = compute(ctx)
			return err
		})
		pending.computed.Add(int64(took))
		if err != nil { // text may still be written
			return nil, err
		}
		return written(text), nil
	}
}

// written is the answer of work whose result is JSON already.
func written(text []byte) answer {
	return func(out []byte, _ *cost.Meter) ([]byte, error) { return append(out, text...), nil }
}

// takeComputed returns how long pending operations have computed since the last call. For the
// metrics it is time of the handler, as other work of the host is.
func (c *Call) takeComputed() time.Duration {
	took := time.Duration(c.pending.computed.Swap(0))
	c.Spent.Time += took
	return took
}
