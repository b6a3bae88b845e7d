// The parts of the JavaScript engine that the linked functions use: functions, and the layout of values.
// The layout is that of QuickJS-NG 0.17.0 in quickjs-wasi 3.6.2, whose digest develop/toolchain/typescript/engine.go
// has. json_test.go fails if an engine has another one.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// A value has a kind in its upper half, and a number or an address in the lower one. A number
// that is not an integer uses all of it.
typedef u64 value;

#define kind_string 0xfffffff9u
#define kind_rope 0xfffffffau // a string whose parts are not joined yet
#define kind_object 0xffffffffu
#define kind_int 0u
#define kind_bool 1u
#define kind_null 2u
#define kind_undefined 3u
#define kind_none 4u // is never a value of JavaScript
#define kind_exception 6u
#define kind_first 0xfffffff7u // kinds from here on, up to kind_object, have a reference count
#define kind_float 8u          // all kinds that are neither below it nor above kind_first

#define value_of(kind, low) ((u64)(kind) << 32 | (u32)(low))
#define kind_of(v) ((u32)((v) >> 32))
#define address_of(v) ((u32)(v))
#define is_float(v) (kind_of(v) - kind_first >= kind_float - kind_first)
#define float_bias 0x7ff8000a00000000ull // a number is stored as its bits less this

static inline u32 load32(u32 at) { return *(u32 *)at; }

// Everything that is counted has its reference count before its address.
static inline void add_reference(u32 address) { ++*(u32 *)(address - 4); }

// context
#define context_runtime 8
#define context_prototypes 48 // values, by class
// runtime
#define runtime_atoms 568 // addresses of strings, by atom

// object: flags and class, shape, values of its properties; then, of an array, the values
// and their number
#define object_flags 8
#define flag_fast_array 16
#define object_class 10
#define object_shape 12
#define object_values 16
#define array_values 28
#define array_count 32

// a date: its time, in milliseconds; a function of the engine: its number
#define date_time 24
#define function_number 28

#define class_object 1
#define class_array 2
#define class_date 10
#define class_function 12
#define class_bytes 24 // Uint8Array

// The numbers of Date.prototype.toJSON and toISOString.
#define number_toJSON 262
#define number_toISOString 255

// A RegExp: its source and its compiled form, which are strings. The first properties of its prototype are
// the getters of flags, source, and each flag, and then exec; the last one is constructor.
#define class_regexp 19
#define regexp_code 28
#define context_regexp 80 // the constructor, a value
#define function_magic 32 // in the upper 16 bits
#define number_exec 89
#define number_flags 196
#define number_flag 198
#define number_species 208
#define species_property 4
#define atom_constructor 64
#define atom_lastIndex 93
#define atom_flags 117
#define atom_global 118
#define atom_unicode 119
#define atom_exec 144
#define atom_species 237
#define atom_ignoreCase 466
#define atom_multiline 468
#define atom_dotAll 470
#define atom_unicodeSets 473
#define atom_sticky 475
#define atom_hasIndices 477

// shape: names of properties, shared by objects. A hash table of mask+1 words precedes the
// properties.
#define shape_hashed 8
#define shape_mask 16
#define shape_count 24
#define shape_prototype 36
#define shape_table 40

struct property {
	u32 flags; // in the upper 6 bits
	u32 atom;  // 0: it was deleted
};

#define flags_of(property) ((property)->flags >> 26)
#define flag_writable 2
#define flag_enumerable 4
#define flags_method 3
#define flags_getter 0x11
#define flags_later 0x33 // it is a method of the language, which is made when it is first used
#define flags_special 0x30 // it has no value of its own: a getter, for example
#define flags_plain 7      // it can be enumerated, written and removed, and has a value

static inline struct property *properties(u32 shape) {
	return (struct property *)(shape + shape_table + 4 * (load32(shape + shape_mask) + 1));
}

#define atom_number 0x80000000u // set: the atom is a number, and no string

// string
#define string_wide 0x80000000u // in the first word, with the length: its units have 16 bits
#define string_form 4
#define form_shift 28 // 2 bits: inside, a part of another string, or elsewhere
#define form_inside 0
#define form_part 1
#define form_elsewhere 2
#define type_shift 30 // 2 bits: of an atom, its type
#define type_string 1
#define string_data 24 // the units; or an address
#define part_start 28  // bytes of data before the part's own

static inline u32 form_of(u32 string) { return load32(string + string_form) >> form_shift & 3; }

static inline u32 units(u32 string) {
	switch (form_of(string)) {
	case form_part:
		return load32(string + string_data) + string_data + load32(string + part_start);
	case form_elsewhere:
		return load32(string + string_data);
	}
	return string + string_data;
}

// a compiled regular expression: its flags, 16 bits, the number of captures, with the match, that of other
// registers, and how many bytes of instructions follow
#define expression_captures 2
#define expression_registers 3
#define expression_size 4
#define expression_code 8
#define flags_global 1
#define flags_sticky 0x20
#define flags_unicode 0x110 // u or v
#define flags_named 0x80    // it has names of groups

// The instructions. Operands of a jump are relative to its end. Those with _i compare canonical
// characters, those with _m know lines.
enum instruction {
	op_char = 1, // 16 bits
	op_char_i,
	op_char32,
	op_char32_i,
	op_dot,
	op_any,
	op_space,
	op_not_space,
	op_line_start,
	op_line_start_m,
	op_line_end,
	op_line_end_m,
	op_goto, // a jump, 32 bits
	op_split_goto_first,
	op_split_next_first,
	op_match,
	op_lookahead_match,
	op_negative_lookahead_match,
	op_save_start, // the number of a capture
	op_save_end,
	op_save_reset, // the numbers of the first and the last capture
	op_loop,       // the number of a register, a jump
	op_loop_split_goto_first, // the number of a register, a limit, a jump
	op_loop_split_next_first,
	op_loop_check_adv_split_goto_first, // the next register has a position
	op_loop_check_adv_split_next_first,
	op_set_i32, // the number of a register, 32 bits
	op_word_boundary,
	op_word_boundary_i,
	op_not_word_boundary,
	op_not_word_boundary_i,
	op_back_reference, // a count, and numbers of captures
	op_back_reference_i,
	op_backward_back_reference,
	op_backward_back_reference_i,
	op_range, // a count of 16 bits, and first and last characters of 16 bits
	op_range_i,
	op_range32, // a count of 16 bits, and first and last characters of 32 bits
	op_range32_i,
	op_lookahead, // a jump
	op_negative_lookahead,
	op_set_char_pos, // the number of a register
	op_check_advance,
	op_prev,
};

#define export(name) __attribute__((export_name(#name))) name
#define engine(name) __attribute__((import_module("engine"), import_name(#name))) name

// Functions that take a value own it, except JS_ValueToAtom, the conversions to C strings, and
// JS_GetOwnProperty. 0 and kind_exception say that an exception is pending.
u32 engine(js_malloc)(u32 context, u32 size);
u32 engine(js_realloc)(u32 context, u32 at, u32 size);
void engine(js_free)(u32 context, u32 at);
void engine(JS_FreeValue)(u32 context, value v);
u32 engine(JS_NewAtomLen)(u32 context, const u8 *text, u32 length); // of ASCII only
void engine(JS_FreeAtom)(u32 context, u32 atom);
u32 engine(JS_ValueToAtom)(u32 context, value v);
value engine(JS_NewStringLen)(u32 context, const u8 *text, u32 length);
u32 engine(JS_ToCStringLen2)(u32 context, u32 *length, value v, u32 cesu);
void engine(JS_FreeCString)(u32 context, u32 text);
u32 engine(JS_ToCStringLenUTF16)(u32 context, u32 *length, value v);
void engine(JS_FreeCStringUTF16)(u32 context, u32 text);
value engine(JS_NewObject)(u32 context);
value engine(JS_NewArray)(u32 context);
value engine(JS_NewArrayFrom)(u32 context, u32 count, value *values); // owns the values
u32 engine(JS_DefinePropertyValue)(u32 context, value object, u32 atom, value v, u32 flags);
u32 engine(JS_GetOwnProperty)(u32 context, u32 descriptor, value object, u32 atom);
value engine(JS_ThrowRangeError)(u32 context, u32 format, u32 arguments);
#define message_length 1060778 // the address of a format: invalid string length
u32 engine(JS_IsFunction)(u32 context, value v);
value engine(JS_Call)(u32 context, value function, value self, u32 count, value *arguments); // owns none
value engine(JS_ToString)(u32 context, value v); // does not own the value
value engine(JS_ParseJSON)(u32 context, const u8 *text, u32 length, const u8 *file); // text[length] is 0

// Functions that the engine does not export: develop/toolchain/typescript/engine.go has their numbers.
value engine(JS_NewObjectFromShape)(u32 context, u32 shape, u32 class, value *values); // owns all
u32 engine(js_alloc_string)(u32 context, u32 length, u32 wide);
value engine(js_json_parse)(u32 context, value self, u32 count, value *arguments);
value engine(js_json_stringify)(u32 context, value self, u32 count, value *arguments);
value engine(js_regexp_Symbol_match)(u32 context, value self, u32 count, value *arguments);
value engine(js_regexp_Symbol_replace)(u32 context, value self, u32 count, value *arguments);
value engine(js_regexp_Symbol_split)(u32 context, value self, u32 count, value *arguments);

u32 engine(lre_realloc)(u32 context, u32 at, u32 size); // without an exception; a size of 0 frees
u32 engine(lre_canonicalize)(u32 character, u32 unicode);
u32 engine(lre_is_space)(u32 character);

// Functions of the glue: see develop/toolchain/typescript/glue.go.
u32 engine(take)(value v, u32 *slot);
u32 engine(interrupt)(void); // whether the run is over

// drop_value decrements a reference count.
static inline void drop_value(u32 context, value v) {
	if (kind_of(v) < kind_first) return;
	int *count = (int *)(address_of(v) - 4);
	if (*count > 1)
		--*count;
	else
		JS_FreeValue(context, v);
}
