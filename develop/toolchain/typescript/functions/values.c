// What the interpreter does most often, for TypeScript modules: counting references, writing variables
// and counting towards the next interrupt. The interpreter has the code of these functions instead of
// their calls. They do the usual case, and leave the rest to the engine's functions.

#include "engine.h"

#define export(name) __attribute__((export_name(#name))) name

#define first_counted ((u64)kind_first << 32) // values from here on have a reference count
#define context_interrupt 292                 // calls and loops until the next interrupt

void free_last(u32 runtime, value v); // see memory.c
u32 engine(js_poll_interrupts)(u32 context);

// released decrements the reference count, unless the reference is the last one, and says whether it did.
static inline int released(value v) {
	if (v < first_counted) return 1;
	int *count = (int *)(address_of(v) - 4);
	if (*count <= 1) return 0;
	--*count;
	return 1;
}

void export(free_value)(u32 context, value v) {
	if (!released(v)) free_last(load32(context + context_runtime), v);
}

void export(free_value_of)(u32 runtime, value v) {
	if (!released(v)) free_last(runtime, v);
}

void export(set_variable)(u32 context, value *variable, value v) {
	value old = *variable;
	*variable = v;
	if (!released(old)) free_last(load32(context + context_runtime), old);
}

u32 export(poll_interrupts)(u32 context) {
	int *rest = (int *)(context + context_interrupt);
	if (*rest <= 1) return js_poll_interrupts(context);
	--*rest;
	return 0;
}
