// JSON for TypeScript modules, compiled into each of them (see develop/toolchain/typescript/glue.go). Parsing makes
// values from UTF-8 in one pass, writing makes UTF-8 from values in one pass. What they cannot
// do exactly as JSON.parse and JSON.stringify would, they decline without an effect, and the
// engine's own functions do it. So these also report every error, except that memory ran out.

#include "engine.h"
#include "words.h"

static const value undefined = value_of(kind_undefined, 0);
static const value exception = value_of(kind_exception, 0);
static const value declined = value_of(kind_none, 0);

static int failed(value v) { return v == exception || v == declined; }

// special finds bytes that a string's plain text cannot have: quotes, backslashes, control
// characters and, with high, those that are not ASCII.
static u64 special(u64 word) {
	return zeros(word ^ every('"')) | zeros(word ^ every('\\')) | word - every(0x20) & ~word & every(0x80);
}
#define high(word) ((word) & every(0x80))

static int is_plain(u8 c) { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\'; }

static void store64(u8 *at, u64 word) { __builtin_memcpy(at, &word, 8); }

// lowest is a mask of the lowest bytes of a word, of which there are less than 8.
static u64 lowest(u32 bytes) { return (1ull << 8 * bytes) - 1; }

// copy copies up to 7 bytes more, of both.
static void copy(u8 *to, const u8 *from, u32 size) {
	if (size > 64) {
		__builtin_memcpy(to, from, size);
		return;
	}
	for (u32 i = 0; i < size; i += 8) store64(to + i, load64(from + i));
}

// copy_exactly copies no byte more.
static void copy_exactly(u8 *to, const u8 *from, u32 size) {
	while (size-- > 0) *to++ = *from++;
}

// ---- Parsing ----

#define max_depth 64 // as rows and bodies may nest
#define first_values 128

struct parser {
	u32 context, runtime;
	const u8 *at, *end; // *end is 0
	value *values;      // those that are not in an object or an array yet
	u32 used, room;
	u8 *text; // of a string with escapes
	u32 text_room;
	u32 deepest;
	u32 latin1; // the text is not UTF-8, but has a byte for each character
	// The last object of each level. The next one there usually has the same names.
	u32 alike[max_depth + 1];
	value first[first_values];
};

static const u8 *blanks(const u8 *at) {
	while (*at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) at++;
	return at;
}

static int push(struct parser *p, value v) {
	if (p->used == p->room) {
		u32 size = p->room * sizeof(value);
		u32 more = p->values == p->first ? js_malloc(p->context, 2 * size) : js_realloc(p->context, (u32)p->values, 2 * size);
		if (more == 0) {
			JS_FreeValue(p->context, v);
			return 0;
		}
		if (p->values == p->first) __builtin_memcpy((u8 *)more, p->first, size);
		p->values = (value *)more;
		p->room *= 2;
	}
	p->values[p->used++] = v;
	return 1;
}

// sequence is the length of a character of UTF-8 that is not ASCII; 0: it is not valid.
static u32 sequence(const u8 *at) {
	u8 c = at[0];
	if (c < 0xc2 || c > 0xf4 || (at[1] & 0xc0) != 0x80) return 0;
	if (c < 0xe0) return 2;
	if ((at[2] & 0xc0) != 0x80) return 0;
	if (c == 0xe0 && at[1] < 0xa0 || c == 0xed && at[1] > 0x9f) return 0;
	if (c < 0xf0) return 3;
	if ((at[3] & 0xc0) != 0x80 || c == 0xf0 && at[1] < 0x90 || c == 0xf4 && at[1] > 0x8f) return 0;
	return 4;
}

// text_end returns the end of a string's text up to the first escape, or 0. It notes whether
// all before it is ASCII.
static const u8 *text_end(struct parser *p, const u8 *at, u32 *ascii) {
	const u8 *last = p->end - 8;
	*ascii = 1;
	for (;;) {
		while (at <= last) {
			u64 word = load64(at), found = special(word) | high(word);
			if (found != 0) {
				at += __builtin_ctzll(found) >> 3;
				break;
			}
			at += 8;
		}
		while (is_plain(*at)) at++;
		if (*at == '"' || *at == '\\') return at;
		u32 size = p->latin1 || *at < 0x20 ? 0 : sequence(at);
		if (size == 0) return 0;
		*ascii = 0;
		at += size;
	}
}

static value string_from(struct parser *p, const u8 *text, u32 size, u32 ascii) {
	if (!ascii || size == 0) return JS_NewStringLen(p->context, text, size);
	u32 made = js_alloc_string(p->context, size, 0);
	if (made == 0) return exception;
	copy((u8 *)made + string_data, text, size); // units are in whole words
	*((u8 *)made + string_data + size) = 0;
	return value_of(kind_string, made);
}

static u32 hex(const u8 *at) {
	u32 n = 0;
	for (u32 i = 0; i < 4; i++) {
		u8 c = at[i], lower = c | 0x20;
		if (c >= '0' && c <= '9')
			n = n << 4 | (c - '0');
		else if (lower >= 'a' && lower <= 'f')
			n = n << 4 | (lower - 'a' + 10);
		else
			return ~0u;
	}
	return n;
}

// character writes a character as UTF-8.
static u8 *character(u8 *to, u32 c) {
	if (c < 0x80) {
		*to++ = c;
		return to;
	}
	if (c < 0x800) {
		*to++ = 0xc0 | c >> 6;
	} else {
		if (c < 0x10000) {
			*to++ = 0xe0 | c >> 12;
		} else {
			*to++ = 0xf0 | c >> 18;
			*to++ = 0x80 | (c >> 12 & 0x3f);
		}
		*to++ = 0x80 | (c >> 6 & 0x3f);
	}
	*to++ = 0x80 | (c & 0x3f);
	return to;
}

static u32 escaped(u8 c) {
	switch (c) {
	case 'b':
		return '\b';
	case 'f':
		return '\f';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	case '"':
	case '\\':
	case '/':
		return c;
	}
	return ~0u;
}

// unescaped is a string with escapes, of which the first is at end.
static value unescaped(struct parser *p, const u8 *begin, const u8 *end, u32 ascii) {
	u32 used = 0;
	for (const u8 *at = begin;;) {
		u32 size = end - at;
		if (used + size + 8 > p->text_room) {
			u32 room = 2 * (used + size) + 64, more = js_realloc(p->context, (u32)p->text, room);
			if (more == 0) return exception;
			p->text = (u8 *)more, p->text_room = room;
		}
		copy(p->text + used, at, size);
		used += size;
		if (*end == '"') break;
		u32 c = escaped(end[1]);
		at = end + 2;
		if (end[1] == 'u') {
			c = hex(at);
			at += 4;
			if (c >= 0xd800 && c < 0xdc00 && at[0] == '\\' && at[1] == 'u') {
				u32 low = hex(at + 2);
				if (low < 0xdc00 || low > 0xdfff) return declined;
				c = 0x10000 + (c - 0xd800 << 10) + (low - 0xdc00);
				at += 6;
			} else if (c >= 0xd800 && c < 0xe000) {
				return declined; // half a pair has no form in UTF-8
			}
		}
		if (c == ~0u) return declined;
		ascii &= c < 0x80;
		used = character(p->text + used, c) - p->text;
		u32 plain;
		end = text_end(p, at, &plain);
		if (end == 0) return declined;
		ascii &= plain;
	}
	p->at = end + 1;
	return string_from(p, p->text, used, ascii);
}

// string parses a string after its first quote.
static value string(struct parser *p, const u8 *at) {
	u32 ascii;
	const u8 *end = text_end(p, at, &ascii);
	if (end == 0) return declined;
	if (*end == '\\') return unescaped(p, at, end, ascii);
	p->at = end + 1;
	return string_from(p, at, end - at, ascii);
}

static int is_digit(u8 c) { return c - '0' < 10u; }

static value boxed(double d) {
	u64 bits;
	__builtin_memcpy(&bits, &d, 8);
	int n = __builtin_wasm_trunc_saturate_s_i32_f64(d);
	if (n == d && (n != 0 || bits == 0)) return value_of(kind_int, n);
	return bits - float_bias;
}

static double power_of_ten(u32 n) { // up to 22 all steps are exact
	double power = 1;
	for (; n > 0; n--) power *= 10;
	return power;
}

// long_number lets the engine parse a number. It is exact whatever its length.
static value long_number(struct parser *p, const u8 *begin, const u8 *end) {
	u8 text[64];
	u32 size = end - begin;
	if (size >= sizeof text) return declined;
	copy_exactly(text, begin, size);
	text[size] = 0;
	return JS_ParseJSON(p->context, text, size, text + size);
}

static value number(struct parser *p, const u8 *at) {
	const u8 *begin = at;
	u32 negative = *at == '-', digits = 0; // without leading zeros
	u64 n = 0;
	int exponent = 0;
	at += negative;
	if (*at == '0') {
		at++;
	} else {
		if (!is_digit(*at)) return declined;
		for (; is_digit(*at); at++, digits++) n = n * 10 + (*at - '0');
	}
	if (*at == '.') {
		const u8 *point = at++;
		for (; is_digit(*at); at++) n = n * 10 + (*at - '0'), digits += n != 0;
		exponent = point + 1 - at;
		if (exponent == 0) return declined;
	}
	if ((*at | 0x20) == 'e') {
		int given = 0;
		at++;
		u32 down = *at == '-';
		if (down || *at == '+') at++;
		if (!is_digit(*at)) return declined;
		for (; is_digit(*at); at++) given = given < 100000 ? given * 10 + (*at - '0') : given;
		exponent += down ? -given : given;
	}
	p->at = at;
	if (digits > 15) return long_number(p, begin, at); // this also says that n is exact
	if (n == 0) return negative ? boxed(-0.0) : value_of(kind_int, 0);
	if (exponent == 0 && n < 0x80000000) return value_of(kind_int, negative ? -(u32)n : (u32)n);
	if (exponent < -22 || exponent > 22) return long_number(p, begin, at);
	double d = (double)n;
	d = exponent < 0 ? d / power_of_ten(-exponent) : d * power_of_ten(exponent);
	return boxed(negative ? -d : d);
}

static value any(struct parser *p, const u8 *at, u32 depth);

// is_name reports whether the string after a quote is an atom that is_usual holds for, and
// returns what follows its closing quote; or 0.
static const u8 *after_name(struct parser *p, const u8 *at, u32 atom) {
	u32 string = load32(load32(p->runtime + runtime_atoms) + 4 * atom), size = load32(string);
	const u8 *name = (const u8 *)string + string_data;
	if ((u32)(p->end - at) <= size || at[size] != '"') return 0;
	for (; size >= 8; size -= 8, at += 8, name += 8)
		if (load64(at) != load64(name)) return 0;
	if ((load64(at) ^ load64(name)) & lowest(size)) return 0;
	return at + size + 1;
}

// is_usual reports whether other objects may be made like this one: all properties are plain
// ones, and a text has their names without escapes.
static int is_usual(struct parser *p, u32 object) {
	u32 shape = load32(object + object_shape), count = load32(shape + shape_count);
	if (*(u8 *)(shape + shape_hashed) == 0 || count == 0) return 0;
	struct property *property = properties(shape);
	for (u32 i = 0; i < count; i++) {
		u32 atom = property[i].atom;
		if (flags_of(&property[i]) != flags_plain || atom == 0 || atom & atom_number) return 0;
		u32 string = load32(load32(p->runtime + runtime_atoms) + 4 * atom), size = load32(string);
		if (size & string_wide || form_of(string) != form_inside) return 0;
		for (const u8 *at = (const u8 *)string + string_data; size > 0; size--)
			if (!is_plain(*at++)) return 0;
	}
	return 1;
}

// name returns the atom of the string after a quote; 0: failed.
static u32 name(struct parser *p, const u8 *at, value *failure) {
	u32 ascii;
	const u8 *end = text_end(p, at, &ascii);
	*failure = exception;
	if (end != 0 && *end == '"' && ascii) {
		p->at = end + 1;
		return JS_NewAtomLen(p->context, at, end - at);
	}
	value v = string(p, at);
	if (failed(v)) {
		*failure = v;
		return 0;
	}
	u32 atom = JS_ValueToAtom(p->context, v);
	JS_FreeValue(p->context, v);
	return atom;
}

// unlike finishes an object whose first names are those of another one, and whose values up to
// there begin at base. Before the others there may be a comma: at is after it, or 0.
static value unlike(struct parser *p, const u8 *at, u32 depth, u32 base, struct property *property) {
	u32 context = p->context;
	value made = JS_NewObject(context);
	if (made == exception) return exception;
	for (u32 i = base; i < p->used; i++, property++) {
		value v = p->values[i];
		p->values[i] = undefined;
		if ((int)JS_DefinePropertyValue(context, made, property->atom, v, flags_plain) < 0) {
			JS_FreeValue(context, made);
			return exception;
		}
	}
	p->used = base;
	if (!push(p, made)) return exception;
	while (at != 0) {
		if (*at != '"') return declined;
		value v;
		u32 atom = name(p, at + 1, &v);
		if (atom == 0) return v;
		at = blanks(p->at);
		v = *at == ':' ? any(p, blanks(at + 1), depth) : declined;
		if (!failed(v) && (int)JS_DefinePropertyValue(context, made, atom, v, flags_plain) < 0) v = exception;
		JS_FreeAtom(context, atom);
		if (failed(v)) return v;
		at = blanks(p->at);
		if (*at != '}' && *at != ',') return declined;
		p->at = at + 1;
		at = *at == ',' ? blanks(at + 1) : 0;
	}
	p->used--;
	u32 object = address_of(made);
	if (is_usual(p, object)) {
		add_reference(object);
		if (p->alike[depth] != 0) JS_FreeValue(context, value_of(kind_object, p->alike[depth]));
		p->alike[depth] = object;
	}
	return made;
}

// object parses an object after its brace.
static value object(struct parser *p, const u8 *at, u32 depth) {
	at = blanks(at);
	if (*at == '}') {
		p->at = at + 1;
		return JS_NewObject(p->context);
	}
	u32 base = p->used, alike = p->alike[depth];
	if (alike == 0) return unlike(p, at, depth, base, 0);
	u32 shape = load32(alike + object_shape), count = load32(shape + shape_count);
	struct property *property = properties(shape);
	for (u32 i = 0; i < count; i++) {
		if (*at != '"') return declined;
		const u8 *after = after_name(p, at + 1, property[i].atom);
		if (after == 0) return unlike(p, at, depth, base, property);
		at = blanks(after);
		if (*at != ':') return declined;
		value v = any(p, blanks(at + 1), depth);
		if (failed(v)) return v;
		if (!push(p, v)) return exception;
		at = blanks(p->at);
		if (*at != '}' && *at != ',') return declined;
		p->at = at + 1;
		if (*at == '}') {
			if (i + 1 < count) return unlike(p, 0, depth, base, property);
			add_reference(shape);
			p->used = base;
			return JS_NewObjectFromShape(p->context, shape, class_object, p->values + base);
		}
		at = blanks(at + 1);
	}
	return unlike(p, at, depth, base, property);
}

// array parses an array after its bracket.
static value array(struct parser *p, const u8 *at, u32 depth) {
	u32 base = p->used;
	at = blanks(at);
	if (*at == ']') {
		p->at = at + 1;
		return JS_NewArray(p->context);
	}
	for (;;) {
		value v = any(p, at, depth);
		if (failed(v)) return v;
		if (!push(p, v)) return exception;
		at = blanks(p->at);
		if (*at == ']') break;
		if (*at != ',') return declined;
		at = blanks(at + 1);
	}
	p->at = at + 1;
	u32 count = p->used - base;
	p->used = base;
	return JS_NewArrayFrom(p->context, count, p->values + base);
}

static value any(struct parser *p, const u8 *at, u32 depth) {
	switch (*at) {
	case '"':
		return string(p, at + 1);
	case '{':
	case '[':
		if (++depth > p->deepest) {
			if (depth > max_depth) return declined;
			p->deepest = depth;
			p->alike[depth] = 0;
		}
		return *at == '{' ? object(p, at + 1, depth) : array(p, at + 1, depth);
	case 't':
		p->at = at + 4;
		return at[1] == 'r' && at[2] == 'u' && at[3] == 'e' ? value_of(kind_bool, 1) : declined;
	case 'f':
		p->at = at + 5;
		return at[1] == 'a' && at[2] == 'l' && at[3] == 's' && at[4] == 'e' ? value_of(kind_bool, 0) : declined;
	case 'n':
		p->at = at + 4;
		return at[1] == 'u' && at[2] == 'l' && at[3] == 'l' ? value_of(kind_null, 0) : declined;
	}
	return number(p, at);
}

// parse parses a text after which there is a zero byte.
static value parse(u32 context, const u8 *text, u32 size, u32 latin1) {
	struct parser p;
	p.context = context, p.runtime = load32(context + context_runtime);
	p.end = text + size;
	p.values = p.first, p.used = 0, p.room = first_values;
	p.text = 0, p.text_room = 0;
	p.deepest = 0, p.latin1 = latin1;
	value v = any(&p, blanks(text), 0);
	if (!failed(v) && blanks(p.at) != p.end) {
		JS_FreeValue(context, v);
		v = declined;
	}
	if (failed(v))
		for (u32 i = 0; i < p.used; i++) JS_FreeValue(context, p.values[i]);
	for (u32 i = 1; i <= p.deepest; i++)
		if (p.alike[i] != 0) JS_FreeValue(context, value_of(kind_object, p.alike[i]));
	if (p.values != p.first) js_free(context, (u32)p.values);
	if (p.text != 0) js_free(context, (u32)p.text);
	return v;
}

// json_value is the value of a text from the host, after which there is space for a byte;
// undefined: it must be parsed otherwise.
value export(json_value)(u32 context, u8 *text, u32 size) {
	text[size] = 0;
	value v = parse(context, text, size, 0);
	return v == declined ? undefined : v;
}

// json_parse is JSON.parse.
value export(json_parse)(u32 context, value self, u32 count, value *arguments) {
	u32 kind = kind_of(arguments[0]), string = address_of(arguments[0]);
	if (count > 1 && kind_of(arguments[1]) == kind_object || kind != kind_string && kind != kind_rope)
		return js_json_parse(context, self, count, arguments);
	value v = declined;
	if (kind == kind_string && form_of(string) == form_inside && !(load32(string) & string_wide))
		v = parse(context, (const u8 *)string + string_data, load32(string), 1);
	if (v == declined) {
		u32 size, text = JS_ToCStringLen2(context, &size, arguments[0], 0);
		if (text == 0) return exception;
		v = parse(context, (const u8 *)text, size, 0);
		JS_FreeCString(context, text);
	}
	return v == declined ? js_json_parse(context, self, count, arguments) : v;
}

// ---- Writing ----

struct writer {
	u32 context, runtime, objects, arrays; // the prototypes
	u8 *begin, *limit;
	u32 owned; // begin was allocated
	u32 ascii; // all that was written is
	u32 exact; // values that JSON has no form for are declined, and do not become null
	u32 dates; // the prototype of dates if its methods are the engine's, ~0 if not, 0 if that was not looked at
};

// Functions that write return the place after what they wrote; 0: declined; or:
#define no_memory ((u8 *)1)

static int stopped(u8 *at) { return at <= no_memory; }

static u8 *more(struct writer *w, u8 *at, u32 size) {
	u32 used = at - w->begin, room = 2 * (used + size) + 64;
	u32 begin = w->owned ? js_realloc(w->context, (u32)w->begin, room) : js_malloc(w->context, room);
	if (begin == 0) return no_memory;
	if (!w->owned) __builtin_memcpy((u8 *)begin, w->begin, used);
	w->owned = 1;
	w->begin = (u8 *)begin, w->limit = (u8 *)begin + room;
	return w->begin + used;
}

// space makes space for so many bytes after at.
static u8 *space(struct writer *w, u8 *at, u32 size) { return (u32)(w->limit - at) < size ? more(w, at, size) : at; }

static u8 digit(u32 n) { return n < 10 ? '0' + n : 'a' - 10 + n; }

// unit writes an escaped or plain unit of UTF-16; it takes six bytes at most.
static u8 *unit(struct writer *w, u8 *at, u32 c) {
	u8 letter;
	switch (c) {
	case '"':
	case '\\':
		letter = c;
		break;
	case '\b':
		letter = 'b';
		break;
	case '\f':
		letter = 'f';
		break;
	case '\n':
		letter = 'n';
		break;
	case '\r':
		letter = 'r';
		break;
	case '\t':
		letter = 't';
		break;
	default:
		if (c >= 0x20 && (c < 0xd800 || c > 0xdfff)) {
			w->ascii &= c < 0x80;
			return character(at, c);
		}
		*at++ = '\\', *at++ = 'u';
		for (int shift = 12; shift >= 0; shift -= 4) *at++ = digit(c >> shift & 15);
		return at;
	}
	*at++ = '\\', *at++ = letter;
	return at;
}

static u8 *write_wide(struct writer *w, u8 *at, const u16 *from, u32 count) {
	if (count > 1 << 28) return 0;
	at = space(w, at, 6 * count + 2);
	if (stopped(at)) return at;
	*at++ = '"';
	for (u32 i = 0; i < count; i++) {
		u32 c = from[i];
		if ((c & 0xfc00) == 0xd800 && i + 1 < count && (from[i + 1] & 0xfc00) == 0xdc00) {
			at = character(at, 0x10000 + (c - 0xd800 << 10) + (from[++i] - 0xdc00));
			w->ascii = 0;
			continue;
		}
		at = unit(w, at, c);
	}
	*at++ = '"';
	return at;
}

static u8 *write_string(struct writer *w, u8 *at, u32 string) {
	u32 count = load32(string) & ~string_wide;
	const u8 *from = (const u8 *)units(string);
	if (load32(string) & string_wide) return write_wide(w, at, (const u16 *)from, count);
	if (count > 1 << 28) return 0;
	at = space(w, at, count + 16);
	if (stopped(at)) return at;
	*at++ = '"';
	const u8 *end = from + count;
	for (; from < end; from += 8, at += 8) {
		u64 word = load64(from), found = special(word) | high(word);
		store64(at, word);
		u32 left = end - from, plain = found == 0 ? 8 : __builtin_ctzll(found) >> 3;
		if (left <= plain) {
			at += left;
			from = end;
			break;
		}
		if (plain < 8) {
			at += plain;
			from += plain;
			break;
		}
	}
	if (from < end) {
		at = space(w, at, 6 * (u32)(end - from) + 2);
		if (stopped(at)) return at;
		while (from < end) at = unit(w, at, *from++);
	}
	*at++ = '"';
	return at;
}

// write_rope writes a string whose parts are not joined yet.
static u8 *write_rope(struct writer *w, u8 *at, value v) {
	u32 count, text = JS_ToCStringLenUTF16(w->context, &count, v);
	if (text == 0) return no_memory;
	at = write_wide(w, at, (const u16 *)text, count);
	JS_FreeCStringUTF16(w->context, text);
	return at;
}

static u8 *write_integer(u8 *at, u64 n) {
	u32 count = 1;
	for (u64 power = 10; power <= n && count < 19; power *= 10) count++;
	for (u8 *digit = at + count; digit > at; n /= 10) *--digit = '0' + n % 10;
	return at + count;
}

// write_number writes a number that is not an integer of 32 bits. A number is k/10^n exactly as
// JSON.stringify writes it if the quotient is that number, n is the smallest one for which there
// is a k, and k is so small that no other k has this quotient.
static u8 *write_number(struct writer *w, u8 *at, value v) {
	u64 bits = v + float_bias;
	double given, size;
	__builtin_memcpy(&given, &bits, 8);
	size = __builtin_fabs(given);
	at = space(w, at, 32);
	if (stopped(at)) return at;
	if (!(size <= 1.7976931348623157e308)) { // not finite
		if (w->exact) return 0;
		store64(at, 0x6c6c756e); // null
		return at + 4;
	}
	if (size == 0) {
		*at++ = '0';
		return at;
	}
	double power = 1;
	for (u32 n = 0; n < 10 && size >= 1e-3; n++, power *= 10) {
		double scaled = __builtin_rint(size * power);
		if (scaled >= 1e15) break;
		if (scaled / power != size) continue;
		if (given < 0) *at++ = '-';
		u64 k = scaled, unit = power;
		at = write_integer(at, k / unit);
		if (n > 0) {
			*at++ = '.';
			for (k %= unit; n > 0; n--) {
				unit /= 10;
				*at++ = '0' + k / unit;
				k %= unit;
			}
		}
		return at;
	}
	u32 length, text = JS_ToCStringLen2(w->context, &length, v, 0);
	if (text == 0) return no_memory;
	copy_exactly(at, (const u8 *)text, length); // at most 25
	JS_FreeCString(w->context, text);
	return at + length;
}

// has_function reports whether a property of an object is the engine's function with that number;
// ~0: there is no memory. The name is given as words, as a module with data cannot be linked.
__attribute__((noinline)) static u32 has_function(u32 context, u32 object, u64 begin, u64 rest, u32 length, u32 number) {
	u64 name[] = {begin, rest};
	u32 atom = JS_NewAtomLen(context, (const u8 *)name, length);
	if (atom == 0) return ~0u;
	JS_FreeAtom(context, atom); // the property has it
	u32 shape = load32(object + object_shape), count = load32(shape + shape_count);
	struct property *property = properties(shape);
	for (u32 i = 0; i < count; i++) {
		if (property[i].atom != atom) continue;
		value v = ((value *)load32(object + object_values))[i];
		u32 function = address_of(v);
		if (flags_of(&property[i]) & flags_special || kind_of(v) != kind_object || *(u16 *)(function + object_class) != class_function) return 0;
		return load32(function + function_number) == number;
	}
	return 0;
}

// looks_at_dates finds out whether dates are written as the language says.
static u32 looks_at_dates(struct writer *w) {
	const u64 toJSON = 0x4e4f534a6f74, toISOString = 0x7274534f53496f74, end = 0x676e69;
	u32 prototype = address_of(((value *)load32(w->context + context_prototypes))[class_date]);
	u32 found = has_function(w->context, prototype, toJSON, 0, 6, number_toJSON);
	if (found == 1) found = has_function(w->context, prototype, toISOString, end, 11, number_toISOString);
	w->dates = found == 1 ? prototype : ~0u;
	return found;
}

static u8 *write_digits(u8 *at, u32 n, u32 count) {
	for (u8 *digit = at + count; digit > at; n /= 10) *--digit = '0' + n % 10;
	return at + count;
}

// write_date writes a date without properties of its own, as toISOString does.
static u8 *write_date(struct writer *w, u8 *at, u32 date) {
	if (w->dates == 0 && looks_at_dates(w) == ~0u) return no_memory;
	u32 shape = load32(date + object_shape);
	if (load32(shape + shape_prototype) != w->dates || load32(shape + shape_count) != 0) return 0;
	value v = *(value *)(date + date_time);
	u64 bits = v + float_bias;
	double time;
	__builtin_memcpy(&time, &bits, 8);
	if (kind_of(v) == kind_int) time = (int)address_of(v);
	if (!(__builtin_fabs(time) <= 8.64e15)) return 0; // an invalid date
	at = space(w, at, 32);
	if (stopped(at)) return at;
	// Years begin in March, so that the day of the leap year is the last one. 400 of them have
	// 146,097 days.
	u64 since = (long long)time + 86400000ll * (719468 + 146097 * 700);
	u32 days = since / 86400000, rest = since % 86400000;
	u32 era = days / 146097, day = days % 146097;
	u32 of_era = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	u32 of_year = day - (365 * of_era + of_era / 4 - of_era / 100), month = (5 * of_year + 2) / 153;
	u32 of_month = of_year - (153 * month + 2) / 5 + 1;
	int year = (int)(era * 400 + of_era) - 280000 + (month >= 10);
	month = month < 10 ? month + 3 : month - 9;
	*at++ = '"';
	if (year < 0 || year > 9999) *at++ = year < 0 ? '-' : '+';
	at = write_digits(at, year < 0 ? -year : year, year < 0 || year > 9999 ? 6 : 4);
	*at++ = '-', at = write_digits(at, month, 2);
	*at++ = '-', at = write_digits(at, of_month, 2);
	*at++ = 'T', at = write_digits(at, rest / 3600000, 2);
	*at++ = ':', at = write_digits(at, rest / 60000 % 60, 2);
	*at++ = ':', at = write_digits(at, rest / 1000 % 60, 2);
	*at++ = '.', at = write_digits(at, rest % 1000, 3);
	*at++ = 'Z', *at++ = '"';
	return at;
}

static u8 *write_object(struct writer *w, u8 *at, u32 object, u32 depth);
static u8 *write_array(struct writer *w, u8 *at, u32 array, u32 depth);

static u8 *write(struct writer *w, u8 *at, value v, u32 depth) {
	u32 low = address_of(v);
	if (is_float(v)) return write_number(w, at, v);
	switch (kind_of(v)) {
	case kind_string:
		return write_string(w, at, low);
	case kind_rope:
		return write_rope(w, at, v);
	case kind_object:
		if (depth == max_depth) return 0; // perhaps it contains itself
		switch (*(u16 *)(low + object_class)) {
		case class_object:
			return write_object(w, at, low, depth + 1);
		case class_array:
			return write_array(w, at, low, depth + 1);
		case class_date:
			return write_date(w, at, low);
		}
		return 0;
	}
	at = space(w, at, 16);
	if (stopped(at)) return at;
	switch (kind_of(v)) {
	case kind_int:
		if ((int)low < 0) *at++ = '-', low = -low;
		return write_integer(at, low);
	case kind_bool:
		if (low) {
			store64(at, 0x65757274); // true
			return at + 4;
		}
		store64(at, 0x65736c6166); // false
		return at + 5;
	case kind_undefined: // in an array
		if (w->exact) return 0;
		// fall through
	case kind_null:
		store64(at, 0x6c6c756e); // null
		return at + 4;
	}
	return 0;
}

// write_object writes an object of properties with values. Its names are in their order, as none
// is a number.
static u8 *write_object(struct writer *w, u8 *at, u32 object, u32 depth) {
	u32 shape = load32(object + object_shape), count = load32(shape + shape_count), prototype = load32(shape + shape_prototype);
	if (prototype != w->objects && prototype != 0) return 0;
	struct property *property = properties(shape);
	value *values = (value *)load32(object + object_values);
	u32 atoms = load32(w->runtime + runtime_atoms);
	u8 separator = '{';
	for (u32 i = 0; i < count; i++, property++) {
		u32 atom = property->atom;
		if (atom == 0) continue;
		if ((flags_of(property) & (flags_special | flag_enumerable)) != flag_enumerable || atom & atom_number) return 0;
		u32 string = load32(atoms + 4 * atom);
		if (load32(string + string_form) >> type_shift != type_string) return 0; // a symbol
		if (is_digit(*(u8 *)units(string))) return 0;
		value v = values[i];
		if (kind_of(v) == kind_undefined) continue;
		at = space(w, at, 1);
		if (stopped(at)) return at;
		*at++ = separator;
		separator = ',';
		at = write_string(w, at, string);
		if (stopped(at)) return at;
		at = space(w, at, 1);
		if (stopped(at)) return at;
		*at++ = ':';
		at = write(w, at, v, depth);
		if (stopped(at)) return at;
	}
	at = space(w, at, 2);
	if (stopped(at)) return at;
	if (separator == '{') *at++ = '{';
	*at++ = '}';
	return at;
}

// write_array writes an array without holes and other properties.
static u8 *write_array(struct writer *w, u8 *at, u32 array, u32 depth) {
	u32 shape = load32(array + object_shape), count = load32(array + array_count);
	if (load32(shape + shape_prototype) != w->arrays || load32(shape + shape_count) != 1 || !(*(u16 *)(array + object_flags) & flag_fast_array)) return 0;
	if (*(value *)load32(array + object_values) != value_of(kind_int, count)) return 0;
	value *values = (value *)load32(array + array_values);
	u8 separator = '[';
	for (u32 i = 0; i < count; i++) {
		at = space(w, at, 1);
		if (stopped(at)) return at;
		*at++ = separator;
		separator = ',';
		at = write(w, at, values[i], depth);
		if (stopped(at)) return at;
	}
	at = space(w, at, 2);
	if (stopped(at)) return at;
	if (separator == '[') *at++ = '[';
	*at++ = ']';
	return at;
}

// converts reports whether lists and objects have a method toJSON; ~0: there is no memory.
static u32 converts(u32 context, value objects, value arrays) {
	const u64 toJSON = 0x4e4f534a6f74; // six letters
	u32 atom = JS_NewAtomLen(context, (const u8 *)&toJSON, 6);
	if (atom == 0) return ~0u;
	u32 found = JS_GetOwnProperty(context, 0, objects, atom) | JS_GetOwnProperty(context, 0, arrays, atom);
	JS_FreeAtom(context, atom);
	return found;
}

// write_text writes a list or an object to the buffer of a writer, or to larger memory.
static u8 *write_text(struct writer *w, u32 context, value v, u8 *buffer, u32 room, u32 exact) {
	value *prototypes = (value *)load32(context + context_prototypes);
	w->context = context, w->runtime = load32(context + context_runtime);
	w->objects = address_of(prototypes[class_object]), w->arrays = address_of(prototypes[class_array]);
	w->begin = buffer, w->limit = buffer + room;
	w->owned = 0, w->ascii = 1, w->exact = exact, w->dates = 0;
	if (load32(load32(w->arrays + object_shape) + shape_prototype) != w->objects) return 0;
	u32 found = converts(context, prototypes[class_object], prototypes[class_array]);
	if (found != 0) return found == 1 ? 0 : no_memory;
	u8 *end = write(w, buffer, v, 0);
	if (stopped(end) && w->owned) js_free(context, (u32)w->begin);
	return end;
}

static int is_data(value v) {
	return kind_of(v) == kind_object && (u16)(*(u16 *)(address_of(v) + object_class) - class_object) <= class_array - class_object;
}

static u32 text_for_host(u32 context, value v, u32 *slot, u8 *buffer, u32 room, u32 exact) {
	struct writer w;
	slot[1] = 0;
	if (!is_data(v)) return kind_of(v) == kind_object && *(u16 *)(address_of(v) + object_class) != class_bytes ? 1 : take(v, slot);
	u8 *end = write_text(&w, context, v, buffer, room, exact);
	if (stopped(end)) return end == no_memory ? 0 : 1;
	slot[0] = end - w.begin;
	if (w.owned) slot[1] = (u32)w.begin | 1;
	return (u32)w.begin;
}

// json_text writes a list or an object for the host, and the number of bytes to slot[0]. It may
// use a buffer. What is allocated is in slot[1], with the lowest bit set. 0: an exception is
// pending; 1: it must be written otherwise, such as a proxy. A Uint8Array and values that are not objects are
// left to take.
u32 export(json_text)(u32 context, value v, u32 *slot, u8 *buffer, u32 room) {
	return text_for_host(context, v, slot, buffer, room, 0);
}

// json_arguments is json_text, but declines a number that is not finite and an undefined element, of
// which JSON.stringify makes null.
u32 export(json_arguments)(u32 context, value v, u32 *slot, u8 *buffer, u32 room) {
	return text_for_host(context, v, slot, buffer, room, 1);
}

// json_stringify is JSON.stringify.
value export(json_stringify)(u32 context, value self, u32 count, value *arguments) {
	for (u32 i = 1; i < count && i < 3; i++)
		if (kind_of(arguments[i]) != kind_undefined && kind_of(arguments[i]) != kind_null) return js_json_stringify(context, self, count, arguments);
	u8 buffer[1024];
	struct writer w;
	u8 *end = is_data(arguments[0]) ? write_text(&w, context, arguments[0], buffer, sizeof buffer, 0) : 0;
	if (end == no_memory) return exception;
	if (end == 0) return js_json_stringify(context, self, count, arguments);
	value v;
	u32 size = end - w.begin;
	if (w.ascii) {
		u32 made = js_alloc_string(context, size, 0);
		v = made == 0 ? exception : value_of(kind_string, made);
		if (made != 0) {
			__builtin_memcpy((u8 *)made + string_data, w.begin, size);
			*((u8 *)made + string_data + size) = 0;
		}
	} else {
		v = JS_NewStringLen(context, w.begin, size);
	}
	if (w.owned) js_free(context, (u32)w.begin);
	return v;
}
