package wasm

import (
	"errors"

	"runner.example/internal/wasm/opcode"
)

func refusal(f opcode.Feature) error {
	return errors.New("uses " + f.Name + ", which cannot be run: " + f.Remedy)
}

// uses are instructions with effects outside of memory and globals.
type uses uint16

const (
	usesTableSet uses = 1 << iota
	usesTableGrow
	usesTableFill
	usesTableCopy
	usesTableInit
	usesElemDrop
	usesMemoryInit
	usesDataDrop
)

var usesText = [...]struct {
	use  uses
	text string
}{
	{usesTableSet, "table.set"},
	{usesTableGrow, "table.grow"},
	{usesTableFill, "table.fill"},
	{usesTableCopy, "table.copy"},
	{usesTableInit, "table.init"},
	{usesElemDrop, "elem.drop"},
	{usesMemoryInit, "memory.init"},
	{usesDataDrop, "data.drop"},
}
