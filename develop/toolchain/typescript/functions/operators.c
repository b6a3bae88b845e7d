// What operators and accesses to properties do most often, for TypeScript modules: the interpreter and some
// functions of the engine have the code of the first ones instead of their calls.

#include "engine.h"
#include "words.h"

u32 engine(find_own_property)(u32 *found, u32 object, u32 atom);
value engine(to_numeric)(u32 context, value v);                // owns the value
u32 engine(to_float)(u32 context, double *result, value v);    // owns the value
u32 engine(string_units)(u32 string);
u32 engine(js_relational_slow)(u32 context, value *top, u32 operator);
value engine(JS_GetPropertyValue)(u32 context, value object, value name); // owns the name

// find_property returns an object's own property, and stores where its value is, or returns 0.
struct property *export(find_property)(value **found, u32 object, u32 atom) {
	u32 shape = load32(object + object_shape), mask = load32(shape + shape_mask);
	struct property *all = (struct property *)(shape + shape_table + 4 * (mask + 1));
	u32 hash = atom * 1640531527u >> (__builtin_clz(mask + 1) + 1);
	u32 i = ((u32 *)all)[~hash];
	while (i > 0) {
		if (all[i - 1].atom == atom) {
			*found = (value *)load32(object + object_values) + i - 1;
			return all + i - 1;
		}
		i = all[i - 1].flags & 0x3ffffff;
	}
	*found = 0;
	return 0;
}

value export(numeric)(u32 context, value v) {
	if (kind_of(v) == kind_int || is_float(v)) return v;
	return to_numeric(context, v);
}

u32 export(float_of)(u32 context, double *result, value v) {
	if (kind_of(v) == kind_int) {
		*result = (int)v;
		return 0;
	}
	if (is_float(v)) {
		u64 form = v + float_bias;
		__builtin_memcpy(result, &form, 8);
		return 0;
	}
	return to_float(context, result, v);
}

u32 export(units_of)(u32 string) {
	if ((load32(string + string_form) >> form_shift & 3) == form_inside) return string + string_data;
	return string_units(string);
}

// compare_bytes is memcmp, with the difference of the first bytes that differ.
int export(compare_bytes)(const u8 *a, const u8 *b, u32 count) {
	while (count >= 8) {
		u64 differing = load64(a) ^ load64(b);
		if (differing) {
			u32 at = __builtin_ctzll(differing) >> 3;
			return a[at] - b[at];
		}
		a += 8, b += 8, count -= 8;
	}
	for (; count > 0; a++, b++, count--)
		if (*a != *b) return *a - *b;
	return 0;
}

// hash_bytes is the engine's hash of a string, with four bytes in each step.
u32 export(hash_bytes)(const u8 *at, u32 count, u32 hash) {
	const u32 factor = 263, square = factor * factor;
	u32 rest = count;
	for (; rest >= 4; at += 4, rest -= 4)
		hash = hash * (square * square) + at[0] * (square * factor) + at[1] * square + at[2] * factor + at[3];
	for (; rest > 0; at++, rest--) hash = hash * factor + *at;
	return hash ^ count * 1640531527u;
}

#define operator_lt 165
#define operator_lte 166
#define operator_gt 167
#define operator_gte 168

// relational compares two values that are not both numbers: it replaces them by the result. The caller
// removes the upper one.
u32 export(relational)(u32 context, value *top, u32 operator) {
	value a = top[-2], b = top[-1];
	if (kind_of(a) != kind_string || kind_of(b) != kind_string) return js_relational_slow(context, top, operator);
	u32 a_count = load32(address_of(a)), b_count = load32(address_of(b));
	if ((a_count | b_count) & string_wide) return js_relational_slow(context, top, operator);
	u32 both = a_count < b_count ? a_count : b_count;
	int order = compare_bytes((u8 *)units_of(address_of(a)), (u8 *)units_of(address_of(b)), both);
	if (order == 0) order = (int)(a_count - b_count);
	u32 result;
	switch (operator) {
	case operator_lt:
		result = order < 0;
		break;
	case operator_lte:
		result = order <= 0;
		break;
	case operator_gt:
		result = order > 0;
		break;
	default:
		result = order >= 0;
	}
	drop_value(context, a);
	drop_value(context, b);
	top[-2] = value_of(kind_bool, result);
	return 0;
}

// get_element returns a property whose name is a value. A number that has the form of a fraction, but is a whole
// number, is an index as well.
value export(get_element)(u32 context, value object, value name) {
	if (is_float(name)) {
		u64 form = name + float_bias;
		double d;
		__builtin_memcpy(&d, &form, 8);
		if (d >= 0 && d < 2147483648.0 && (double)(int)d == d) name = value_of(kind_int, (int)d);
	}
	return JS_GetPropertyValue(context, object, name);
}
