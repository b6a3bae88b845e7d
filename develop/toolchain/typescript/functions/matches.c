// What TypeScript modules make of matches of regular expressions: the arrays of exec, the iterators of matchAll,
// and the results of test and search. The functions do what the engine's do, for expressions whose class the
// handler has not changed, and leave the rest to the engine's.

#include "regexp.h"
#include "words.h"

#define flags_letters 8 // of an expression, in the order of their letters
#define flags_indices 0x40
#define flags_names 0x80 // some captures have names
#define flags_stateful (flags_global | flags_sticky)
#define flags_throw 0x4000 // of a definition: an error is an exception

#define context_match_shape 44 // of the arrays of exec: length, index, input, groups
#define array_size 24          // how many values there is memory for
#define atom_empty 48          // the empty string
#define regexp_source 24

// RegExp String Iterator: its data, which are the expression, the text, and then bytes and a word
#define class_matches 48
#define object_data 24
#define matches_global 16
#define matches_unicode 17
#define matches_done 20
#define matches_size 24

value engine(js_sub_string)(u32 context, u32 string, u32 start, u32 end);
value engine(js_regexp_exec)(u32 context, value self, u32 count, value *arguments);
value engine(JS_RegExpExec)(u32 context, value self, value text);
value engine(js_regexp_test)(u32 context, value self, u32 count, value *arguments);
value engine(js_regexp_Symbol_search)(u32 context, value self, u32 count, value *arguments);
value engine(js_regexp_Symbol_matchAll)(u32 context, value self, u32 count, value *arguments);
value engine(js_regexp_get_flags)(u32 context, value self);
value engine(js_regexp_string_iterator_next)(u32 context, value self, u32 count, value *arguments, u32 *done,
                                             u32 magic);
value engine(js_string_match)(u32 context, value self, u32 count, value *arguments, u32 symbol);
value engine(JS_NewObjectProto)(u32 context, value prototype);
value engine(JS_NewObjectClass)(u32 context, u32 class);

// ---- Cache ----

// What is known of an expression that is used often is kept: an object of its groups, for the shape, and the sets of
// its matcher. There is a reference to its code then, so that no other code gets its address. Before that there is
// none, because a reference changes a page of memory.
struct kept {
	u32 groups; // 0: there is no object yet
	struct sets sets;
};

struct entry {
	u32 code;
	u32 kept; // an address; below often, how often the code was used
};

#define often 16
#define cache_entries 16 // develop/toolchain/typescript/glue.go has the memory

struct entry *engine(cache)(void);

static struct entry *entry_of(u32 code) { return cache() + (code >> 3 ^ code >> 7) % cache_entries; }

// kept_of returns what is kept of an expression's code, or 0.
static struct kept *kept_of(u32 code) {
	u32 kept = entry_of(code)->kept;
	return kept < often ? 0 : (struct kept *)kept;
}

struct sets *kept_sets(u32 context, u32 code) {
	struct entry *entry = entry_of(code);
	if (entry->code != code) {
		if (entry->kept >= often) {
			struct kept *old = (struct kept *)entry->kept;
			JS_FreeValue(context, value_of(kind_string, entry->code));
			if (old->groups) JS_FreeValue(context, value_of(kind_object, old->groups));
			lre_realloc(context, entry->kept, 0);
		}
		*entry = (struct entry){.code = code};
		return 0;
	}
	if (entry->kept < often - 1) {
		entry->kept++;
		return 0;
	}
	struct kept *kept = (struct kept *)entry->kept;
	if (entry->kept < often) {
		kept = (struct kept *)lre_realloc(context, 0, sizeof(struct kept));
		if (kept == 0) return 0;
		entry->kept = (u32)kept;
		add_reference(code);
		kept->groups = 0;
		clear_sets(&kept->sets);
	}
	return &kept->sets;
}

// ---- Groups ----

static u32 code_of(u32 object) { return load32(object + regexp_code); }

// first_name is the name of capture 1. It ends with a zero; one byte more, and the next one follows.
static place first_name(struct method *of) {
	return of->m.code + get32(of->m.code - expression_code + expression_size);
}

inlined u32 size_of(place name) {
	for (u32 size = 0;; size += 8) {
		u64 zero = zeros(load64(name + size));
		if (zero) return size + __builtin_ctzll(zero) / 8;
	}
}

// new_groups makes an object of groups that are undefined.
static value new_groups(struct method *of) {
	u32 context = of->context;
	value made = JS_NewObjectProto(context, value_of(kind_null, 0));
	place name = first_name(of);
	for (u32 i = 2; made != exception && i < of->m.captures; i += 2) {
		u32 size = size_of(name);
		if (size > 0) {
			u32 atom = JS_NewAtomLen(context, name, size);
			value none = value_of(kind_undefined, 0);
			if (atom == 0 || (int)JS_DefinePropertyValue(context, made, atom, none, flags_plain | flags_throw) < 0) {
				JS_FreeValue(context, made);
				made = exception;
			}
			JS_FreeAtom(context, atom);
		}
		name += size + 2;
	}
	return made;
}

// ---- Results ----

// open_match makes a matcher of an expression whose lastIndex is a whole number, and a text.
static u32 open_match(struct method *of, u32 context, value self, value text) {
	if (kind_of(text) != kind_string || kind_of(self) != kind_object) return 0;
	u32 object = address_of(self);
	if (*(u16 *)(object + object_class) != class_regexp) return 0;
	struct property *names = properties(load32(object + object_shape));
	value last = *(value *)load32(object + object_values);
	if (names->atom != atom_lastIndex || flags_of(names) != flag_writable) return 0;
	if (kind_of(last) != kind_int || (int)last < 0) return 0;
	return open_expression(of, context, object, address_of(text)) && !(of->flags & flags_indices);
}

// find_next finds what exec finds, and does not set lastIndex yet.
static int find_next(struct method *of) {
	u32 from = of->flags & flags_stateful ? (u32) * (value *)load32(of->object + object_values) : 0;
	int found = from > of->length ? 0 : match(&of->m, from);
	release_matcher(&of->m);
	return found;
}

static void advance(struct method *of, int found) {
	if (of->flags & flags_stateful) set_lastIndex(of, found ? position(of, 1) : 0);
}

static void free_values(u32 context, value *values, u32 count) {
	while (count > 0) JS_FreeValue(context, values[--count]);
}

#define short_part 256

// part is a part of the text.
static value part(struct method *of, u32 start, u32 end) {
	u32 count = end - start;
	if (of->wide || count - 1 >= short_part || count == of->length)
		return js_sub_string(of->context, of->text, start, end);
	u32 made = js_alloc_string(of->context, count, 0);
	if (made == 0) return exception;
	u8 *to = (u8 *)made + string_data;
	for (u32 i = 0; i < count; i += 8) { // the memory of a string is whole words
		u64 word = load64(of->units + start + i);
		__builtin_memcpy(to + i, &word, 8);
	}
	to[count] = 0;
	return value_of(kind_string, made);
}

inlined value again(value v) {
	if (kind_of(v) == kind_string) add_reference(address_of(v));
	return v;
}

// groups makes the object of the groups of a match, or returns declined if two of them have one name.
static value groups(struct method *of, value *captures) {
	u32 named = 0;
	struct kept *kept = kept_of(code_of(of->object));
	value values[most_registers / 2], made = exception;
	place name = first_name(of);
	for (u32 i = 1; i < of->m.captures / 2; i++) {
		u32 size = size_of(name);
		if (size > 0) values[named++] = captures[i];
		name += size + 2;
	}
	u32 object = kept ? kept->groups : 0;
	if (object == 0) {
		made = new_groups(of);
		if (made == exception) return exception;
		object = address_of(made);
		if (kept) kept->groups = object;
	}
	u32 shape = load32(object + object_shape);
	if (load32(shape + shape_count) != named) {
		if (!kept) JS_FreeValue(of->context, made);
		return declined;
	}
	for (u32 i = 0; i < named; i++) again(values[i]);
	if (!kept) {
		for (u32 i = 0; i < named; i++) ((value *)load32(object + object_values))[i] = values[i];
		return made;
	}
	add_reference(shape);
	return JS_NewObjectFromShape(of->context, shape, class_object, values);
}

// array makes the array of a match, or returns declined.
static value array(struct method *of) {
	u32 context = of->context, count = of->m.captures / 2, made = 0;
	value result = exception;
	value *values = (value *)js_malloc(context, count * sizeof(value));
	if (values == 0) return exception;
	for (; made < count; made++) {
		u32 start = 2 * made, missing = of->registers[start] == 0 || of->registers[start + 1] == 0;
		values[made] = missing ? value_of(kind_undefined, 0) : part(of, position(of, start), position(of, start + 1));
		if (values[made] == exception) goto failed;
	}
	value named = of->flags & flags_names ? groups(of, values) : value_of(kind_undefined, 0);
	if (named == exception || named == declined) {
		result = named;
		goto failed;
	}
	value text = again(value_of(kind_string, of->text));
	value first[] = {value_of(kind_int, count), value_of(kind_int, position(of, 0)), text, named};
	u32 of_arrays = load32(context + context_match_shape);
	add_reference(of_arrays);
	result = JS_NewObjectFromShape(context, of_arrays, class_array, first);
	if (result == exception) goto failed;
	u32 object = address_of(result);
	*(u32 *)(object + array_size) = count;
	*(value **)(object + array_values) = values;
	*(u32 *)(object + array_count) = count;
	return result;
failed:
	free_values(context, values, made);
	js_free(context, (u32)values);
	return result;
}

// executed is the result of exec of a matcher that is open.
static value executed(struct method *of) {
	int found = find_next(of);
	if (found < 0) return declined;
	value made = found ? array(of) : value_of(kind_null, 0);
	if (made != declined) advance(of, found);
	return made;
}

// regexp_exec is RegExp.prototype.exec.
value export(regexp_exec)(u32 context, value self, u32 count, value *arguments) {
	struct method of;
	if (open_match(&of, context, self, arguments[0])) {
		value made = executed(&of);
		if (made != declined) return made;
	}
	return js_regexp_exec(context, self, count, arguments);
}

// regexp_call_exec is RegExpExec of the language: it calls the method exec, whatever that is.
value export(regexp_call_exec)(u32 context, value self, value text) {
	struct method of;
	if (has_exec(context, self) && open_match(&of, context, self, text)) {
		value made = executed(&of);
		if (made != declined) return made;
	}
	return JS_RegExpExec(context, self, text);
}

// regexp_test is RegExp.prototype.test.
value export(regexp_test)(u32 context, value self, u32 count, value *arguments) {
	struct method of;
	if (has_exec(context, self) && open_match(&of, context, self, arguments[0])) {
		int found = find_next(&of);
		if (found >= 0) {
			advance(&of, found);
			return value_of(kind_bool, found);
		}
	}
	return js_regexp_test(context, self, count, arguments);
}

// regexp_search is RegExp.prototype[Symbol.search].
value export(regexp_search)(u32 context, value self, u32 count, value *arguments) {
	struct method of;
	if (has_exec(context, self) && open_match(&of, context, self, arguments[0])) {
		int found = match(&of.m, 0);
		release_matcher(&of.m);
		if (found >= 0) return value_of(kind_int, found ? position(&of, 0) : -1u);
	}
	return js_regexp_Symbol_search(context, self, count, arguments);
}

// regexp_flags is the getter of RegExp.prototype.flags.
value export(regexp_flags)(u32 context, value self) {
	if (!is_common(context, self)) return js_regexp_get_flags(context, self);
	u32 flags = get16((place)units(code_of(address_of(self)))), count = 0;
	u8 text[flags_letters];
	if (flags & flags_indices) text[count++] = 'd';
	if (flags & 1) text[count++] = 'g';
	if (flags & 2) text[count++] = 'i';
	if (flags & 4) text[count++] = 'm';
	if (flags & 8) text[count++] = 's';
	if (flags & 16) text[count++] = 'u';
	if (flags & 256) text[count++] = 'v';
	if (flags & 32) text[count++] = 'y';
	return JS_NewStringLen(context, text, count);
}

// ---- matchAll ----

// copy makes an expression of the code of another one, whose class is common.
static value copy(u32 context, u32 object) {
	u32 shape = load32(object + object_shape);
	add_reference(shape);
	value made = JS_NewObjectFromShape(context, shape, class_regexp, (value *)load32(object + object_values));
	if (made == exception) return exception;
	u32 source = load32(object + regexp_source), code = code_of(object);
	add_reference(source);
	add_reference(code);
	*(u32 *)(address_of(made) + regexp_source) = source;
	*(u32 *)(address_of(made) + regexp_code) = code;
	return made;
}

// regexp_match_all is RegExp.prototype[Symbol.matchAll].
value export(regexp_match_all)(u32 context, value self, u32 count, value *arguments) {
	value text = arguments[0];
	if (kind_of(text) != kind_string || !is_common(context, self) || !is_constructed(context) ||
	    (int)*(value *)load32(address_of(self) + object_values) < 0)
		return js_regexp_Symbol_matchAll(context, self, count, arguments);
	value expression = copy(context, address_of(self));
	if (expression == exception) return exception;
	value made = JS_NewObjectClass(context, class_matches);
	u32 data = made == exception ? 0 : js_malloc(context, matches_size);
	if (data == 0) {
		JS_FreeValue(context, expression);
		JS_FreeValue(context, made);
		return exception;
	}
	u32 flags = get16((place)units(code_of(address_of(self))));
	add_reference(address_of(text));
	((value *)data)[0] = expression;
	((value *)data)[1] = text;
	*(u8 *)(data + matches_global) = (flags & flags_global) != 0;
	*(u8 *)(data + matches_unicode) = (flags & flags_unicode) != 0;
	*(u32 *)(data + matches_done) = 0;
	*(u32 *)(address_of(made) + object_data) = data;
	return made;
}

// regexp_next is the method next of the iterators of matchAll.
value export(regexp_next)(u32 context, value self, u32 count, value *arguments, u32 *done, u32 magic) {
	u32 object = address_of(self), data = 0;
	if (kind_of(self) == kind_object && *(u16 *)(object + object_class) == class_matches) data = load32(object + object_data);
	struct method of;
	if (data && !load32(data + matches_done) && has_exec(context, *(value *)data) &&
	    open_match(&of, context, *(value *)data, ((value *)data)[1])) {
		u32 global = *(u8 *)(data + matches_global), unicode = *(u8 *)(data + matches_unicode);
		value made = global == (of.global != 0) && unicode == (of.unicode != 0) ? executed(&of) : declined;
		if (made == exception) {
			*done = 0;
			return exception;
		}
		if (made != declined) {
			u32 last = kind_of(made) == kind_null;
			*done = last;
			if (last || !global)
				*(u32 *)(data + matches_done) = 1;
			else if (position(&of, 0) == position(&of, 1))
				set_lastIndex(&of, behind(&of, position(&of, 1)));
			return last ? value_of(kind_undefined, 0) : made;
		}
	}
	return js_regexp_string_iterator_next(context, self, count, arguments, done, magic);
}

// ---- Methods of strings ----

// string_match is String.prototype.match, matchAll or search, by the symbol of the expression's method.
value export(string_match)(u32 context, value self, u32 count, value *arguments, u32 symbol) {
	value expression = arguments[0];
	if (kind_of(self) == kind_string && has_exec(context, expression)) {
		switch (symbol) {
		case atom_match:
			if (!is_method(context, place_match, atom_match, number_match)) break;
			return regexp_match(context, expression, 1, &self);
		case atom_matchAll:
			if (!is_method(context, place_matchAll, atom_matchAll, number_matchAll)) break;
			if (!is_common(context, expression) || !is_method(context, place_match, atom_match, number_match)) break;
			if (!(get16((place)units(code_of(address_of(expression)))) & flags_global)) break;
			return regexp_match_all(context, expression, 1, &self);
		case atom_search:
			if (!is_method(context, place_search, atom_search, number_search)) break;
			return regexp_search(context, expression, 1, &self);
		}
	}
	return js_string_match(context, self, count, arguments, symbol);
}
