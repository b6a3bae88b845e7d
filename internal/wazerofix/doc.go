// Package wazerofix corrects a defect of the compiler of wazero 1.12.0, in the process that
// imports it. Each package that imports wazero imports this one too, so that no code is compiled
// without the correction.
//
// On amd64, a select of floats or vectors is compiled to a copy of its second operand and a
// conditional move onto the copy. The compiler's register allocator takes the conditional move
// for one that always writes. So it may give the copy's register to another value in between,
// and place the result in a register that holds something else: if the condition is zero, the
// result is what any code before left there, such as bytes that the host copied for another
// request. The correction is the one of later versions: the move reads its destination, as
// that of integers does. See https://github.com/wazero/wazero/pull/2535.
//
// It changes a table that the compiler reads, before anything is compiled. The compiler's table
// for arm64 is right, so there the package is empty.
package wazerofix
