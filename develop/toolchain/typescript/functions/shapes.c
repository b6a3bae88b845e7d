// Making objects in TypeScript modules, and adding properties to them. Objects with the same properties in the same
// order share their shape. To add a property is a step from one shape to the next. If an object has the next shape,
// the engine finds it. Otherwise it changes the shape of the object in place if no other object has that shape, or
// changes a copy. Changed in place, the shapes of earlier steps are lost: of the steps that make an object with three
// properties, only the last one found its shape. These functions keep the shapes of a step that is made for the 32nd
// time, and not before: a kept shape takes memory, which must be restored after a short request.

#include "engine.h"
#include "memory.h"

struct property *find_property(value **found, u32 object, u32 atom);
void release_of(u32 runtime, u32 at);
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
	if (load32(next + shape_hash) != hash || load32(next + shape_count) != count + 1) return 0;
	if (load32(next + shape_prototype) != load32(shape + shape_prototype)) return 0;
	struct property *a = properties(next), *b = properties(shape);
	for (; count > 0; a++, b++, count--)
		if (a->atom != b->atom || flags_of(a) != flags_of(b)) return 0;
	return a->atom == atom && flags_of(a) == flags;
}

// property_added adds a property without a value, and returns where the value goes, or 0.
u32 export(property_added)(u32 context, u32 object, u32 atom, u32 flags) {
	u32 shape = load32(object + object_shape), runtime = load32(context + context_runtime);
	if (!*(u8 *)(shape + shape_hashed) || *(u8 *)(object + object_flags) & flag_prototype)
		return add_property(context, object, atom, flags);
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

u32 engine(define_value)(u32 context, value object, u32 atom, value v, u32 flags); // owns the value

#define flag_extensible 2
#define flag_exotic 8
#define flag_throw 0x4000 // of a definition: it throws if it is refused

// value_defined is JS_DefinePropertyValue: at once for a new property of a plain object.
u32 export(value_defined)(u32 context, value object, u32 atom, value v, u32 flags) {
	if (kind_of(object) != kind_object || (flags | flag_throw) != (flags_plain | flag_throw))
		return define_value(context, object, atom, v, flags);
	u32 at = address_of(object);
	value *found;
	if (*(u16 *)(at + object_class) != class_object || find_property(&found, at, atom) ||
	    (*(u16 *)(at + object_flags) & (flag_extensible | flag_exotic)) != flag_extensible)
		return define_value(context, object, atom, v, flags);
	found = (value *)property_added(context, at, atom, flags_plain);
	if (found == 0) {
		drop_value(context, v);
		return (u32)-1;
	}
	*found = v;
	return 1;
}

#define context_array_shape 28
#define runtime_objects 596   // the list of all objects
#define runtime_threshold 624 // the bytes from which garbage is collected
#define object_bytes 40

// object_made is JS_NewObjectFromShape: at once for objects without values, and empty arrays, if no garbage is to be
// collected before.
value export(object_made)(u32 context, u32 shape, u32 class, value *values) {
	u32 runtime = load32(context + context_runtime), at, room;
	if (values || class != class_object && (class != class_array || shape != load32(context + context_array_shape)) ||
	    load32(runtime + runtime_bytes) + object_bytes > load32(runtime + runtime_threshold) ||
	    (at = take_slot(runtime, object_bytes)) == 0)
		return JS_NewObjectFromShape(context, shape, class, values);
	room = take_slot(runtime, 8 * load32(shape + shape_room));
	if (room == 0) {
		release_of(runtime, at);
		return JS_NewObjectFromShape(context, shape, class, values);
	}
	u16 *flags = (u16 *)(at + object_flags);
	*flags = (*flags & 0xfe00) | flag_extensible;
	*(u16 *)(at + object_class) = class;
	store32(at + object_shape, shape);
	store32(at + object_values, room);
	store32(at + object_weak, 0);
	store32(at + object_weak + 4, 0);
	if (class == class_array) {
		*flags |= flag_fast_array | flag_exotic;
		*(value *)room = value_of(kind_int, 0); // the length
		store32(at + array_values - 4, 0);
		store32(at + array_values, 0);
		store32(at + array_count, 0);
	}
	u32 list = runtime + runtime_objects, last = load32(list);
	*(u8 *)(at - 5) = 0;
	store32(at - 4, 1);
	store32(last + 4, at);
	store32(at, last);
	store32(at + 4, list);
	store32(list, at);
	return value_of(kind_object, at);
}
