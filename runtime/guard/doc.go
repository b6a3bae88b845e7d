// Package guard reserves address space for memories that compiled code accesses without comparing
// addresses with their length, and turns the faults of such code into its exit "out of bounds".
//
// Each region has 8 GiB of address space of which nothing but its memory can be accessed. A 32-bit
// index and an offset below 2 GiB form addresses inside of it, and the code compares accesses with
// larger offsets. So an access beyond the memory's length faults, and changes nothing.
//
//	0 .......... length ................ 6 GiB + 64 KiB ...... 8 GiB
//	the memory | not accessible, and in reach of the guest | unused
//
// The handler of SIGSEGV is entered before Go's. It takes a fault for one of compiled code if the
// address lies in a region, the region's code runs, and the instruction is not in the text of this
// program. It does then what the code's own exit does: it stores the exit code and the place in the
// execution context, and returns to the caller of the code. All other faults are Go's, among them
// those of Go code at an address in a region.
//
// The layout of the execution context is that of wazero 1.12.0 on amd64; the self-test of the
// sandboxes checks it at each start.
package guard
