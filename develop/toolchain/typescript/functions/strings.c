// Building texts in TypeScript modules: String.prototype.concat, which template literals call, and
// Number.prototype.toFixed. They do what needs no code of the handler, and leave the rest to the engine.

#include "engine.h"

value engine(js_string_concat)(u32 context, value self, u32 count, value *arguments);
value engine(js_number_toFixed)(u32 context, value self, u32 count, value *arguments);

static const value exception = value_of(kind_exception, 0);

#define most_parts 32
#define most_joined 8192 // units; the engine joins longer texts only when they are read
#define most_digits 20   // of a number

// digits writes a number in decimal, to the end of some bytes, and returns where it begins.
static u8 *digits(u8 *end, u64 n) {
	u32 low = (u32)n;
	for (; n > 0xffffffff; low = (u32)n) {
		*--end = '0' + n % 10;
		n /= 10;
	}
	do {
		*--end = '0' + low % 10;
		low /= 10;
	} while (low > 0);
	return end;
}

static u32 digit_count(u32 n) {
	u32 count = 1;
	for (; n >= 10; n /= 10) count++;
	return count;
}

// whole converts a number to the integer kind if it is a 32-bit integer.
static value whole(value v) {
	if (!is_float(v)) return v;
	u64 form = v + float_bias;
	double d;
	__builtin_memcpy(&d, &form, 8);
	return __builtin_fabs(d) < 2147483648.0 && (double)(int)d == d ? value_of(kind_int, (int)d) : v;
}

static u64 magnitude(value v) { return (int)v < 0 ? -(long long)(int)v : (int)v; }

// string_concat joins a text with texts and numbers.
value export(string_concat)(u32 context, value self, u32 count, value *arguments) {
	value parts[most_parts + 1];
	if (kind_of(self) != kind_string || count > most_parts) goto engine;
	u32 length = 0, wide = 0, made = 0;
	for (u32 i = 0; i <= count; i++) {
		value part = i == 0 ? self : whole(arguments[i - 1]);
		if (kind_of(part) == kind_int) {
			length += digit_count(magnitude(part)) + ((int)part < 0);
			parts[i] = part;
			continue;
		}
		if (kind_of(part) != kind_string) goto engine;
		u32 units = load32(address_of(part));
		wide |= units & string_wide;
		length += units & ~string_wide;
		if (length > most_joined) goto engine;
		parts[i] = part;
	}
	made = js_alloc_string(context, length, wide != 0);
	if (made == 0) return exception;
	u8 *to = (u8 *)made + string_data;
	u16 *to_wide = (u16 *)to;
	for (u32 i = 0; i <= count; i++) {
		u8 number[most_digits + 1], *from = number + sizeof(number);
		u32 n, from_wide = 0;
		if (kind_of(parts[i]) == kind_int) {
			from = digits(from, magnitude(parts[i]));
			if ((int)parts[i] < 0) *--from = '-';
			n = number + sizeof(number) - from;
		} else {
			u32 string = address_of(parts[i]);
			n = load32(string) & ~string_wide;
			from_wide = load32(string) & string_wide;
			from = (u8 *)units(string);
		}
		if (from_wide)
			__builtin_memcpy(to_wide, from, 2 * n), to_wide += n;
		else if (wide)
			while (n-- > 0) *to_wide++ = *from++;
		else if (n > 16)
			__builtin_memcpy(to, from, n), to += n;
		else
			while (n-- > 0) *to++ = *from++;
	}
	if (!wide) *to = 0;
	return value_of(kind_string, made);
engine:
	return js_string_concat(context, self, count, arguments);
}

// number_toFixed writes up to three digits behind the point. The number is a fraction of whole numbers, whose
// digits are exact.
value export(number_toFixed)(u32 context, value self, u32 count, value *arguments) {
	value wanted = arguments[0];
	if (kind_of(wanted) != kind_int || (u32)wanted > 3) goto engine;
	u32 places = (u32)wanted, factor = 1, negative;
	for (u32 i = 0; i < places; i++) factor *= 10;
	u64 number;
	if (kind_of(self) == kind_int) {
		number = magnitude(self) * factor;
		negative = (int)self < 0;
	} else if (is_float(self)) {
		u64 form = self + float_bias;
		int exponent = (int)(form >> 52 & 0x7ff) - 1075; // the number is mantissa * 2^exponent
		if (exponent > -1 || exponent < -62) goto engine;
		u64 product = (form & 0xfffffffffffff | 0x10000000000000) * factor;
		number = product >> -exponent;
		if (product >> (-exponent - 1) & 1) number++; // a half is rounded up
		negative = form >> 63;
	} else
		goto engine;
	u8 text[most_digits + 4], *end = text + sizeof(text), *at = end;
	u32 fraction = number % factor;
	number /= factor;
	if (places > 0) {
		for (u32 i = 0; i < places; i++, fraction /= 10) *--at = '0' + fraction % 10;
		*--at = '.';
	}
	at = digits(at, number);
	if (negative) *--at = '-';
	u32 n = end - at, made = js_alloc_string(context, n, 0);
	if (made == 0) return exception;
	u8 *to = (u8 *)made + string_data;
	while (at < end) *to++ = *at++;
	*to = 0;
	return value_of(kind_string, made);
engine:
	return js_number_toFixed(context, self, count, arguments);
}
