// Iteration for TypeScript modules: for-of and patterns of arrays. The functions do what the engine's do, for arrays
// and iterators of matchAll whose class the handler has not changed, and leave the rest to the engine's.

#include "engine.h"

#define class_array_iterator 46
#define class_matches 48
#define flag_exotic 8
#define object_data 24

// an array iterator's data: the array, which values it gives, and the next index
#define iterator_kind 8
#define iterator_index 12
#define iterator_size 16
#define kind_values 1

#define number_iterate 3 // Array.prototype.values, with the magic number kind_values
#define number_next 4    // of array iterators
#define number_next_match 209 // of iterators of matchAll
#define number_self 241 // Iterator.prototype[Symbol.iterator]
#define atom_return 6
#define atom_next 114
#define atom_iterator 228

u32 engine(JS_IteratorClose)(u32 context, value iterator, u32 failed);
u32 engine(js_for_of_start)(u32 context, value *top, u32 async);
value engine(js_array_iterator_next)(u32 context, value self, u32 count, value *arguments, u32 *done, u32 magic);
value engine(JS_IteratorNext)(u32 context, value iterator, value method, u32 count, value *arguments, u32 *done);
value engine(JS_NewObjectClass)(u32 context, u32 class);

static const value exception = value_of(kind_exception, 0);

// own finds an object's own property, or returns 0.
static value *own(u32 object, u32 atom, u32 *flags) {
	u32 shape = load32(object + object_shape), mask = load32(shape + shape_mask);
	struct property *names = properties(shape);
	u32 slot = atom * 1640531527u >> (__builtin_clz(mask + 1) + 1);
	for (u32 i = ((u32 *)names)[-1 - (int)slot]; i != 0; i = *(u32 *)(names + i - 1) & 0x3ffffff) {
		if (names[i - 1].atom != atom) continue;
		*flags = flags_of(names + i - 1);
		return (value *)load32(object + object_values) + i - 1;
	}
	return 0;
}

static u32 prototype_of(u32 context, u32 class) { return address_of(((value *)load32(context + context_prototypes))[class]); }

static u32 parent_of(u32 object) { return load32(load32(object + object_shape) + shape_prototype); }

// language_method returns an object's own method if it is the language's function of these numbers, or 0.
static u32 language_method(u32 object, u32 atom, u32 number, u32 magic) {
	u32 flags = 0;
	value *method = own(object, atom, &flags);
	if (method == 0 || flags & flags_special || kind_of(*method) != kind_object) return 0;
	u32 function = address_of(*method);
	if (*(u16 *)(function + object_class) != class_function || *(u32 *)(function + function_number) != number) return 0;
	return load32(function + function_magic) >> 16 == magic ? function : 0;
}

// start_array replaces an array by its iterator and the method next, and says whether it could.
static int start_array(u32 context, value *top) {
	value array = top[-1];
	u32 object = address_of(array), prototype = prototype_of(context, class_array), flags;
	if (parent_of(object) != prototype || own(object, atom_iterator, &flags)) return 0;
	if (!language_method(prototype, atom_iterator, number_iterate, kind_values)) return 0;
	u32 next = language_method(prototype_of(context, class_array_iterator), atom_next, number_next, 0);
	if (next == 0) return 0;
	value made = JS_NewObjectClass(context, class_array_iterator);
	if (made == exception) return -1;
	u32 data = js_malloc(context, iterator_size);
	if (data == 0) {
		JS_FreeValue(context, made);
		return -1;
	}
	*(value *)data = array;
	*(u32 *)(data + iterator_kind) = kind_values;
	*(u32 *)(data + iterator_index) = 0;
	*(u32 *)(address_of(made) + object_data) = data;
	add_reference(next);
	top[-1] = made;
	top[0] = value_of(kind_object, next);
	return 1;
}

// start_matches pushes the method next of an iterator of matchAll, which is its own iterator, and says whether
// it could.
static int start_matches(u32 context, value *top) {
	u32 object = address_of(top[-1]), prototype = prototype_of(context, class_matches), flags;
	if (parent_of(object) != prototype || own(object, atom_iterator, &flags) || own(object, atom_next, &flags)) return 0;
	if (own(prototype, atom_iterator, &flags)) return 0;
	u32 parent = parent_of(prototype), next = language_method(prototype, atom_next, number_next_match, 0);
	if (next == 0 || parent == 0 || !language_method(parent, atom_iterator, number_self, 0)) return 0;
	add_reference(next);
	top[0] = value_of(kind_object, next);
	return 1;
}

static int start(u32 context, value *top) {
	if (kind_of(top[-1]) != kind_object) return 0;
	switch (*(u16 *)(address_of(top[-1]) + object_class)) {
	case class_array:
		return start_array(context, top);
	case class_matches:
		return start_matches(context, top);
	}
	return 0;
}

// for_of replaces a value on the interpreter's stack by its iterator, and pushes the method next.
u32 export(for_of)(u32 context, value *top, u32 async) {
	int started = async ? 0 : start(context, top);
	if (started == 0) return js_for_of_start(context, top, async);
	return started > 0 ? 0 : -1u;
}

// following returns the next value of an array's iterator, or kind_none.
static value following(value self) {
	const value none = value_of(kind_none, 0);
	if (kind_of(self) != kind_object || *(u16 *)(address_of(self) + object_class) != class_array_iterator) return none;
	u32 data = load32(address_of(self) + object_data);
	if (data == 0 || kind_of(*(value *)data) != kind_object || load32(data + iterator_kind) != kind_values) return none;
	u32 array = address_of(*(value *)data), index = load32(data + iterator_index);
	if (*(u16 *)(array + object_class) != class_array || !(*(u8 *)(array + object_flags) & flag_fast_array)) return none;
	if (index >= load32(array + array_count)) return none;
	*(u32 *)(data + iterator_index) = index + 1;
	value found = ((value *)load32(array + array_values))[index];
	if (kind_of(found) >= kind_first) add_reference(address_of(found));
	return found;
}

// array_next is the method next of array iterators.
value export(array_next)(u32 context, value self, u32 count, value *arguments, u32 *done, u32 magic) {
	value found = following(self);
	if (kind_of(found) == kind_none) return js_array_iterator_next(context, self, count, arguments, done, magic);
	*done = 0;
	return found;
}

// iterate calls the method next of an iterator.
value export(iterate)(u32 context, value iterator, value method, u32 count, value *arguments, u32 *done) {
	if (kind_of(method) == kind_object) {
		u32 function = address_of(method);
		if (*(u16 *)(function + object_class) == class_function && *(u32 *)(function + function_number) == number_next) {
			value found = following(iterator);
			if (kind_of(found) != kind_none) {
				*done = 0;
				return found;
			}
		}
	}
	return JS_IteratorNext(context, iterator, method, count, arguments, done);
}

// close calls the method return of an iterator. failed: an exception is pending, and stays.
u32 export(close)(u32 context, value iterator, u32 failed) {
	if (kind_of(iterator) != kind_object) return JS_IteratorClose(context, iterator, failed);
	for (u32 object = address_of(iterator), flags; object != 0; object = parent_of(object))
		if (*(u8 *)(object + object_flags) & flag_exotic || own(object, atom_return, &flags))
			return JS_IteratorClose(context, iterator, failed);
	return failed ? -1u : 0;
}
