// The memory of TypeScript modules. The engine's allocator has blocks of some 4 KiB with slots of one size,
// and a list of the blocks that have a free slot, for each size. These functions take the common case: a
// block has a free slot before and after. They leave the rest to the engine: large memory, a new block, a block
// that becomes full or empty. The limit and the counts are kept as the engine keeps them.

#include "engine.h"
#include "memory.h"

u32 export(allocate_of)(u32 runtime, u32 size) {
	u32 at = take_slot(runtime, size);
	return at ? at : js_malloc_rt(runtime, size);
}

u32 export(allocate)(u32 context, u32 size) {
	u32 at = take_slot(load32(context + context_runtime), size);
	return at ? at : js_malloc(context, size);
}

void export(release_of)(u32 runtime, u32 at) {
	if (!free_slot(runtime, at)) js_free_rt(runtime, at);
}

void export(release)(u32 context, u32 at) {
	if (!free_slot(load32(context + context_runtime), at)) js_free(context, at);
}

// free_last frees a value whose last reference is released. Its count is still 1.
void export(free_last)(u32 runtime, value v) {
	u32 string = address_of(v);
	if (kind_of(v) == kind_string && load32(string + string_form) >> form_shift == form_inside) {
		unlink(string + string_link);
		release_of(runtime, string);
		return;
	}
	JS_FreeValueRT(runtime, v);
}

// free_counted frees an object without references, or something else that the engine's garbage collector
// knows. It frees plain objects and arrays itself.
void export(free_counted)(u32 runtime, u32 object) {
	u32 class = *(u16 *)(object + object_class);
	if (*(u8 *)(object - 5) & 0x7f || class != class_object && class != class_array || load32(object + object_weak) ||
	    *(u8 *)(runtime + runtime_phase) == phase_cycles ||
	    class == class_array && !(*(u16 *)(object + object_flags) & flag_fast_array)) {
		free_gc_object(runtime, object);
		return;
	}
	u32 shape = load32(object + object_shape), count = load32(shape + shape_count);
	value *values = (value *)load32(object + object_values);
	struct property *names = properties(shape);
	for (u32 i = 0; i < count; i++) {
		if (flags_of(names + i) & flags_special)
			free_property(runtime, values + i, flags_of(names + i));
		else
			drop_value_of(runtime, values[i]);
	}
	release_of(runtime, (u32)values);
	if (references(shape) > 1)
		--*(u32 *)(shape - 4);
	else
		free_shape(runtime, shape);
	if (class == class_array) {
		values = (value *)load32(object + array_values);
		for (u32 i = 0, n = load32(object + array_count); i < n; i++) drop_value_of(runtime, values[i]);
		release_of(runtime, (u32)values);
	}
	unlink(object);
	release_of(runtime, object);
}
