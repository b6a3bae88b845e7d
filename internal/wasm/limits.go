package wasm

import "time"

// Limits of a module: of its file, and of all that can make compiling or running it cost far
// more than the file's size suggests. They are checked before memory is allocated by a
// number that the module declares.
type Limits struct {
	ModuleBytes   int // the file
	Types         int
	Imports       int
	Functions     int // that the module defines
	BodyBytes     int // of one function: its locals and its code
	Locals        int // of one function, parameters included
	AllLocals     int // of all functions together
	Nesting       int // blocks within blocks
	FrameBytes    int // of native stack that a call of one function may take
	BlockValues   int // parameters and results of all blocks, branches and calls in one function
	Globals       int
	Exports       int
	Tables        int
	TableElements int // that all tables have to begin with
	Elements      int // entries of all element segments
	DataSegments  int
	Customs       int // custom sections
	Parts         int // of a Merge
	// Compile is the time for compiling all functions, estimated from their branches and
	// locals: compilers need time and memory by the square of them.
	Compile time.Duration
}

// DefaultLimits are far above what compilers generate for handlers. For example, a Go program
// has one table element for each function.
func DefaultLimits() Limits {
	return Limits{
		ModuleBytes:   64 << 20,
		Types:         10_000,
		Imports:       1_000,
		Functions:     100_000,
		BodyBytes:     1 << 20,
		Locals:        10_000,
		AllLocals:     2_000_000,
		Nesting:       10_000,
		FrameBytes:    16 << 20,
		BlockValues:   1 << 20,
		Globals:       10_000,
		Exports:       10_000,
		Tables:        8,
		TableElements: 1 << 16,
		Elements:      1 << 18,
		DataSegments:  500_000,
		Customs:       1_000,
		Parts:         1_000,
		Compile:       2 * time.Minute,
	}
}

// maxArity is how many parameters or results a function type may have.
const maxArity = 1_000

// PageBytes is the unit of linear memory.
const PageBytes = 64 << 10

// maxPages is the whole address space of a 32-bit memory.
const maxPages = 1 << 16
