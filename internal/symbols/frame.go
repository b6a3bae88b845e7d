package symbols

// Frame is one active call.
type Frame struct {
	// Function is the function's name as in the source; "" if it is unknown.
	Function string
	// File is the source file; "" if it is unknown. Line and Column count from 1; 0: unknown.
	File         string
	Line, Column int
	// Offset is that of the instruction in the module's file as uploaded; -1: unknown.
	Offset int64
}
