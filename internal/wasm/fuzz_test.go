package wasm_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"runner.example/internal/wasm"
)

func seeds(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(generate(seed))
	}
	f.Add(code(0x01))
	f.Add(code(0x41, 0, 0x04, 0x40, 0x0f, 0x05, 0x03, 0x40, 0x0c, 0x01, 0x0b, 0x0b))
	f.Add(code(0x03, 0x01, 0x0b, 0x1a))
	f.Add(watModule(f, recursions))
	f.Add(watModule(f, runaways))
	for seed := range uint64(5) {
		module, _ := goModule(f, rand.New(rand.NewPCG(seed, 0)))
		f.Add(module)
	}
	for _, guest := range guests(f) {
		f.Add(guest)
	}
}

// FuzzParse: any bytes are either accepted, or refused with an error of one line, without
// a panic. A second rewrite without options changes nothing, and every rewrite that
// succeeds can be parsed.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := wasm.Parse(b, wasm.DefaultLimits())
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		m.Eligibility()
		same, _, err := m.Rewrite(wasm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := wasm.Parse(same, wasm.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		twice, _, err := again.Rewrite(wasm.Options{})
		if err != nil || !bytes.Equal(same, twice) {
			t.Fatalf("written twice it is different: %v", err)
		}
		for _, o := range forms[1:] {
			out, _, err := m.Rewrite(*o)
			if err != nil {
				continue // its data or its names, in a line
			}
			if _, err := wasm.Parse(out, written()); err != nil {
				t.Fatalf("%+v: what was written cannot be read: %v", *o, err)
			}
		}
	})
}

// written are limits for what this package writes: it may be larger than what was parsed.
func written() wasm.Limits {
	l := wasm.DefaultLimits()
	l.Types, l.Imports, l.Functions, l.Globals, l.Exports, l.Tables = 1e6, 1e6, 1e6, 1e6, 1e6, 1e6
	l.Locals, l.BodyBytes, l.AllLocals, l.Nesting, l.BlockValues = 1e6, 1e8, 1e8, 1e6, 1e9
	l.Elements, l.TableElements, l.DataSegments, l.Compile = 1e7, 1e9, 1e7, 1e18
	return l
}

// acceptedBy returns a function that says whether the engine accepts a module.
func acceptedBy(f *testing.F, config wazero.RuntimeConfig) func([]byte) error {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(features))
	f.Cleanup(func() { _ = r.Close(ctx) })
	return func(b []byte) error {
		compiled, err := r.CompileModule(ctx, b)
		if err == nil {
			err = compiled.Close(ctx)
		}
		return err
	}
}

// withoutCustom removes the custom sections: damage in them does not make a module
// invalid. The engine takes unlimited memory for names, and refuses an empty section at
// the end of a module.
func withoutCustom(b []byte) []byte {
	out := slices.Clone(b[:8])
	for pos := 8; pos < len(b); {
		size, n := binary.Uvarint(b[pos+1:])
		end := pos + 1 + n + int(size)
		if b[pos] != 0 {
			out = append(out, b[pos:end]...)
		}
		pos = end
	}
	return out
}

// FuzzRewrite: what Parse and Rewrite accept the engine accepts exactly when it
// accepts the original, with or without dispatch.
func FuzzRewrite(f *testing.F) {
	seeds(f)
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\t\b`\x00\x00`\x00\x00\x01\x7f"))
	accepts := acceptedBy(f, wazero.NewRuntimeConfigInterpreter())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := wasm.Parse(b, wasm.DefaultLimits())
		if err != nil {
			return
		}
		original := accepts(withoutCustom(b))
		for i, o := range append(forms[1:len(forms):len(forms)], &everything, &everything) {
			if i == len(forms) {
				m = m.WithoutDispatch()
			}
			out, _, err := m.Rewrite(*o)
			if err != nil {
				continue
			}
			if rewritten := accepts(out); (original == nil) != (rewritten == nil) {
				t.Fatalf("%+v: the original: %v; rewritten: %v", *o, original, rewritten)
			}
		}
	})
}
