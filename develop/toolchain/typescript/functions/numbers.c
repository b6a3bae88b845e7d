// Arithmetic of numbers for TypeScript modules: remainders, and bitwise operators of numbers that are not
// 32-bit integers. The engine's functions do what is not between two numbers.

#include "engine.h"

#define export(name) __attribute__((export_name(#name))) name

// fmod by another name, as the compiler knows that one.
__attribute__((import_module("engine"), import_name("fmod"))) double any_remainder(double a, double b);
u32 engine(js_binary_logic_slow)(u32 context, value *top, u32 operator);

#define operator_shl 158
#define operator_sar 159
#define operator_and 161
#define operator_xor 162
#define operator_or 163

// remainder is fmod. Whole numbers up to 2^53 are divided as integers.
double export(remainder)(double a, double b) {
	const double most = 9007199254740992;
	double above = __builtin_fabs(a), below = __builtin_fabs(b);
	if (!(above <= most && below <= most && below >= 1)) return any_remainder(a, b);
	u64 n = (u64)above, by = (u64)below;
	if ((double)n != above || (double)by != below) return any_remainder(a, b);
	return __builtin_copysign((double)(n % by), a);
}

// bits is ToInt32 of a number.
static inline int bits(value v, u32 *word) {
	if (kind_of(v) == kind_int) {
		*word = (u32)v;
		return 1;
	}
	if (!is_float(v)) return 0;
	u64 form = v + float_bias;
	double d;
	__builtin_memcpy(&d, &form, 8);
	if (!(__builtin_fabs(d) < 4503599627370496)) return 0; // of larger ones the engine finds the bits
	*word = (u32)(long long)d;
	return 1;
}

// binary_logic is for operators of two values, of which one is not an integer: it replaces
// them by the result. The caller removes the upper one.
u32 export(binary_logic)(u32 context, value *top, u32 operator) {
	u32 a, b;
	if (!bits(top[-2], &a) || !bits(top[-1], &b)) return js_binary_logic_slow(context, top, operator);
	switch (operator) {
	case operator_shl:
		a <<= b & 31;
		break;
	case operator_sar:
		a = (u32)((int)a >> (b & 31));
		break;
	case operator_and:
		a &= b;
		break;
	case operator_xor:
		a ^= b;
		break;
	case operator_or:
		a |= b;
		break;
	default:
		return js_binary_logic_slow(context, top, operator);
	}
	top[-2] = value_of(kind_int, a);
	return 0;
}
