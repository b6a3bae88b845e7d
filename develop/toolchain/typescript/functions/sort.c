// Sorting for TypeScript modules: Array.prototype.sort, which toSorted uses too. It sorts arrays without
// holes by merging, with few calls of the function that compares, and compares texts itself if there is no function.
// It leaves the rest to the engine. The result is that of the engine, unless the function is inconsistent:
// then the language does not define the order.

#include "engine.h"

value engine(js_array_sort)(u32 context, value self, u32 count, value *arguments);
u32 engine(JS_SetPropertyInt64)(u32 context, value object, unsigned long long index, value v); // owns the value
u32 engine(to_float)(u32 context, double *result, value v);                                  // owns the value
int compare_bytes(const u8 *a, const u8 *b, u32 count);

static const value undefined = value_of(kind_undefined, 0);
static const value exception = value_of(kind_exception, 0);

struct element {
	value v;
	u32 place; // its index before
};

struct order {
	u32 context, failed;
	value compare; // a function, or undefined
};

#define run 8 // the length of the parts that are sorted by insertion

static int compare_texts(u32 a, u32 b) {
	u32 a_count = load32(a), b_count = load32(b), wide = (a_count | b_count) & string_wide;
	u32 a_wide = a_count & string_wide, b_wide = b_count & string_wide;
	a_count &= ~string_wide, b_count &= ~string_wide;
	u32 both = a_count < b_count ? a_count : b_count;
	const u8 *x = (u8 *)units(a), *y = (u8 *)units(b);
	int differing = 0;
	if (!wide)
		differing = compare_bytes(x, y, both);
	else
		for (u32 i = 0; i < both && differing == 0; i++)
			differing = (a_wide ? ((u16 *)x)[i] : x[i]) - (b_wide ? ((u16 *)y)[i] : y[i]);
	return differing ? differing : a_count > b_count ? 1 : a_count < b_count ? -1 : 0;
}

// after says whether a is sorted after b.
static inline int after(struct order *o, struct element *a, struct element *b) {
	if (o->failed) return 0;
	if (o->compare == undefined) return compare_texts(address_of(a->v), address_of(b->v)) > 0;
	value both[2] = {a->v, b->v};
	value result = JS_Call(o->context, o->compare, undefined, 2, both);
	if (kind_of(result) == kind_int) return (int)result > 0;
	double d = 0;
	if (kind_of(result) == kind_exception || (int)to_float(o->context, &d, result) < 0) o->failed = 1;
	return d > 0;
}

// sort_run sorts a few elements by binary insertion.
static void sort_run(struct order *o, struct element *all, u32 count) {
	for (u32 i = 1; i < count; i++) {
		struct element one = all[i];
		if (!after(o, all + i - 1, &one)) continue;
		u32 low = 0, high = i - 1; // it belongs before high
		while (low < high) {
			u32 middle = (low + high) / 2;
			if (after(o, all + middle, &one))
				high = middle;
			else
				low = middle + 1;
		}
		for (u32 to = i; to > low; to--) all[to] = all[to - 1];
		all[low] = one;
	}
}

// merge joins two sorted parts. other has space for the first one.
static void merge(struct order *o, struct element *all, u32 first, u32 count, struct element *other) {
	if (!after(o, all + first - 1, all + first)) return;
	for (u32 i = 0; i < first; i++) other[i] = all[i];
	u32 a = 0, b = first, to = 0;
	while (a < first && b < count) all[to++] = after(o, other + a, all + b) ? all[b++] : other[a++];
	while (a < first) all[to++] = other[a++];
}

// sort returns 0 if the function that compares has thrown.
static u32 sort(struct order *o, struct element *all, u32 count, struct element *other) {
	for (u32 at = 0; at < count && !o->failed; at += run) sort_run(o, all + at, count - at < run ? count - at : run);
	for (u32 width = run; width < count && !o->failed; width *= 2)
		for (u32 at = 0; at + width < count && !o->failed; at += 2 * width)
			merge(o, all + at, width, count - at < 2 * width ? count - at : 2 * width, other);
	return !o->failed;
}

static u32 is_fast(u32 array) {
	return *(u16 *)(array + object_class) == class_array && *(u16 *)(array + object_flags) & flag_fast_array;
}

// put sets an element of the array, which the function that compares may have changed.
static u32 put(u32 context, value self, u32 index, value v) {
	u32 array = address_of(self);
	if (!is_fast(array) || index >= load32(array + array_count))
		return (int)JS_SetPropertyInt64(context, self, index, v) >= 0;
	value *at = (value *)load32(array + array_values) + index, old = *at;
	*at = v;
	drop_value(context, old);
	return 1;
}

value export(array_sort)(u32 context, value self, u32 argument_count, value *arguments) {
	struct order o = {context, 0, arguments[0]};
	if (kind_of(self) != kind_object || !is_fast(address_of(self))) goto engine;
	u32 array = address_of(self), count = load32(array + array_count), texts = 1, present = 0;
	if (*(value *)load32(array + object_values) != value_of(kind_int, count)) goto engine; // its length
	if (count < 2 || count > 0x1000000) goto engine;
	value *values = (value *)load32(array + array_values);
	for (u32 i = 0; i < count; i++) {
		if (values[i] == undefined) continue;
		present++;
		if (kind_of(values[i]) != kind_string) texts = 0;
	}
	if (o.compare == undefined ? !texts : !JS_IsFunction(context, o.compare)) goto engine;
	struct element *all = (struct element *)js_malloc(context, 2 * count * sizeof(struct element));
	if (all == 0) return exception;
	present = 0;
	for (u32 i = 0; i < count; i++) {
		if (values[i] == undefined) continue;
		if (kind_of(values[i]) >= kind_first) add_reference(address_of(values[i]));
		all[present++] = (struct element){values[i], i};
	}
	u32 done = 0, sorted = sort(&o, all, present, all + count);
	for (; sorted && done < present; done++) {
		if (all[done].place == done)
			drop_value(context, all[done].v);
		else
			sorted = put(context, self, done, all[done].v);
	}
	for (; done < present; done++) drop_value(context, all[done].v);
	for (; sorted && done < count; done++) sorted = put(context, self, done, undefined);
	js_free(context, (u32)all);
	if (!sorted) return exception;
	add_reference(array);
	return self;
engine:
	return js_array_sort(context, self, argument_count, arguments);
}
