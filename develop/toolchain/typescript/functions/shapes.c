// Adding properties to objects in TypeScript modules. Objects with the same properties in the same order share
// their shape. The engine finds the shape with one more property if an object has it. Otherwise it changes the
// shape of the object, if no other object has that, and else a copy. So of objects that are made one after the other
// with three properties, only the last step found a shape. This function keeps the shapes between, when a step is
// made for the eighth time: kept shapes take other memory, which must be restored after a short request.

#include "engine.h"
#include "memory.h"

u32 engine(add_property)(u32 context, u32 object, u32 atom, u32 flags);

// Of the glue: a word with the number of kept shapes, and then words for steps: the upper bits of the hash of the
// next shape, and how often the step was made.
u32 engine(steps)(void);
#define step_words 64
#define step_times 32u
#define most_kept 64
#define most_properties 8 // of a shape that is kept

#define runtime_shape_bits 756 // the binary logarithm of the number of lists of shapes
#define runtime_shapes 768     // the lists
#define shape_hash 12
#define shape_room 20 // how many values its objects have space for
#define shape_next 32 // of its list
#define flag_prototype 1
#define factor 1640531527u

static void keep(u32 shape, u32 *kept) {
	store32(shape - 4, references(shape) + 1);
	++*kept;
}

// is_next says whether a shape has the properties of another one, and then one more.
static u32 is_next(u32 next, u32 shape, u32 hash, u32 atom, u32 flags) {
	u32 count = load32(shape + shape_count);
	if (load32(next + shape_hash) != hash || load32(next + shape_prototype) != load32(shape + shape_prototype) || load32(next + shape_count) != count + 1) return 0;
	struct property *a = properties(next), *b = properties(shape);
	for (; count > 0; a++, b++, count--)
		if (a->atom != b->atom || flags_of(a) != flags_of(b)) return 0;
	return a->atom == atom && flags_of(a) == flags;
}

// property_added adds a property without a value, and returns where the value goes, or 0.
u32 export(property_added)(u32 context, u32 object, u32 atom, u32 flags) {
	u32 shape = load32(object + object_shape), runtime = load32(context + context_runtime);
	if (!*(u8 *)(shape + shape_hashed) || *(u8 *)(object + object_flags) & flag_prototype) return add_property(context, object, atom, flags);
	u32 count = load32(shape + shape_count), hash = ((load32(shape + shape_hash) + atom) * factor + flags) * factor;
	u32 next = load32(load32(runtime + runtime_shapes) + 4 * (hash >> (32 - load32(runtime + runtime_shape_bits))));
	while (next && !is_next(next, shape, hash, atom, flags)) next = load32(next + shape_next);
	if (next && load32(next + shape_room) == load32(shape + shape_room)) {
		store32(next - 4, references(next) + 1);
		store32(object + object_shape, next);
		if (references(shape) > 1)
			store32(shape - 4, references(shape) - 1);
		else
			free_shape(runtime, shape);
		return load32(object + object_values) + 8 * count;
	}
	if (next || count >= most_properties) return add_property(context, object, atom, flags);
	u32 *kept = (u32 *)steps(), *step = kept + 1 + hash % step_words;
	if (*kept >= most_kept) return add_property(context, object, atom, flags);
	if ((*step ^ hash) >= step_times) *step = hash & ~(step_times - 1);
	if (*step % step_times < step_times - 1) {
		++*step;
		return add_property(context, object, atom, flags);
	}
	if (references(shape) == 1) keep(shape, kept);
	u32 at = add_property(context, object, atom, flags);
	if (at) keep(load32(object + object_shape), kept);
	return at;
}
