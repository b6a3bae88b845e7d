package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/tetratelabs/wazero"
)

// code is what the compiler made of a rewritten module. Modules share it that are
// rewritten to the same bytes, as those of one program are that differ in their data.
type code struct {
	key   string
	users int           // modules; guarded by Engine.mu
	done  chan struct{} // closed when the rest is there
	err   error

	compiled wazero.CompiledModule
}

// code gives that of a rewritten module: the one that others have, or a new one.
// Each has its leave.
func (e *Engine) code(ctx context.Context, s source) (*code, error) {
	sum := sha256.Sum256(s.wasm)
	key := hex.EncodeToString(sum[:])
	for {
		e.mu.Lock()
		c, there := e.codes[key]
		if !there {
			c = &code{key: key, done: make(chan struct{})}
			e.codes[key] = c
		}
		c.users++
		e.mu.Unlock()
		if !there {
			return e.fill(ctx, c, s)
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			e.mu.Lock()
			c.users-- // not the last: who has it compiled is there
			e.mu.Unlock()
			return nil, cancelled(ctx)
		}
		if c.err == nil {
			return c, nil
		} // who had it compiled may have failed for reasons of its own
	}
}

// fill has new code compiled, or takes it from the folder of what was.
func (e *Engine) fill(ctx context.Context, c *code, s source) (*code, error) {
	if e.cache != nil {
		c.compiled, c.err = e.cache.make(ctx, c.key, s, e.compile)
	} else {
		c.compiled, c.err = e.compile(ctx, s, false)
	}
	if c.err != nil {
		e.mu.Lock()
		delete(e.codes, c.key)
		e.mu.Unlock()
	}
	close(c.done)
	return c, c.err
}

// leave is the end of a module that has had the code.
func (e *Engine) leave(ctx context.Context, c *code) error {
	e.mu.Lock()
	c.users--
	last := c.users == 0
	if last {
		delete(e.codes, c.key)
	}
	e.mu.Unlock()
	if !last {
		return nil
	}
	return c.compiled.Close(ctx)
}
