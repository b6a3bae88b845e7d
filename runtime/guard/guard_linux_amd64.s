//go:build patched

#include "textflag.h"

// The handler of SIGSEGV: DI is the signal, SI a siginfo, DX a ucontext of the kernel. It runs on the
// signal stack of a thread, knows nothing of Go, and uses registers that a C function may change.
TEXT ·handler(SB), NOSPLIT|NOFRAME, $0
	CMPL 8(SI), $2            // si_code: SEGV_ACCERR
	JNE  other
	MOVQ 16(SI), R8           // si_addr
	SUBQ ·begin(SB), R8
	CMPQ R8, ·length(SB)
	JAE  other
	SHRQ $33, R8              // the region
	SHLQ $6, R8
	LEAQ ·running(SB), R9
	MOVQ (R9)(R8*1), R9       // the execution context
	TESTQ R9, R9
	JZ   other
	MOVQ 168(DX), R10         // RIP
	CMPQ R10, ·textBegin(SB)
	JB   compiled
	CMPQ R10, ·textEnd(SB)
	JB   other

compiled:
	// As the exit that the compiler places behind a function, for an address out of bounds.
	MOVL $4, 0(R9)            // exitCode: out of bounds
	INCQ R10                  // as a return address, behind the begin of the instruction
	MOVQ R10, 48(R9)          // goCallReturnAddress
	MOVQ 160(DX), R11         // RSP
	MOVQ R11, 56(R9)          // stackPointerBeforeGoCall
	MOVQ 120(DX), R11         // RBP
	MOVQ R11, 1152(R9)        // framePointerBeforeGoCall
	MOVQ 16(R9), R11          // originalFramePointer
	MOVQ R11, 120(DX)
	MOVQ 24(R9), R11          // originalStackPointer, at the return address
	MOVQ 0(R11), R10
	MOVQ R10, 168(DX)
	ADDQ $8, R11
	MOVQ R11, 160(DX)
	RET                       // to the restorer: the thread goes on at the caller of the code

other:
	MOVQ ·next(SB), AX
	JMP  AX

TEXT ·handlerAddress(SB), NOSPLIT, $0-8
	LEAQ ·handler(SB), AX
	MOVQ AX, ret+0(FP)
	RET
