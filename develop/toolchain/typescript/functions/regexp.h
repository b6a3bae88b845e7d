// What the files of regular expressions share: regexp.c has the matcher, and matches.c what is made of matches.

#include "engine.h"

#define inlined static inline __attribute__((always_inline))
#define called static __attribute__((noinline))

typedef const u8 *place; // in the text, or of an instruction

inlined u32 get16(place at) {
	u16 n;
	__builtin_memcpy(&n, at, 2);
	return n;
}

inlined u32 get32(place at) {
	u32 n;
	__builtin_memcpy(&n, at, 4);
	return n;
}

// methods of RegExp.prototype: their numbers, symbols, and places among the properties
#define number_match 203
#define number_matchAll 204
#define number_search 205
#define atom_match 229
#define atom_matchAll 230
#define atom_search 232
#define place_match 15
#define place_matchAll 16
#define place_search 17

// A set has what can come first where an instruction is reached: the ASCII characters, and flags.
// It may have more than that. Of an instruction that matches one character it has exactly the
// ASCII characters that it matches.
struct set {
	u64 low, high;
	u32 flags;
};

#define set_other 1  // characters that are not ASCII
#define set_end 2    // the end of the text
#define set_any 4    // anything: the set is not known
#define set_inside 8 // also elsewhere than at the start of a line

#define sets_kept 32
#define first_words 256

// A site is an instruction that makes an alternative. See note.
struct site {
	u32 first;     // its first bit
	u32 counter;   // the register with the number of rounds left; no_counter
	u32 rounds;    // what it begins with
	u32 most;      // more rounds than that make no difference
	u32 registers; // those that are in use there
};

#define no_counter 256

// The sets of an expression: of its first characters, and those that were needed most recently.
struct sets {
	u32 started;      // starts is known
	u32 boundary;     // it begins with \b
	struct set starts;
	u32 run;          // it begins with a run of starts, and
	struct set behind; // no start can come behind the run
	u32 keys[sets_kept]; // an instruction, or its complement: it was reached once, and has no set
	struct set of[sets_kept];
};

struct matcher {
	u32 context, unicode, repeat, wide;
	place code, begin, finish; // the instructions: all of them, those of one attempt, and their end
	place text, end;
	u32 *registers, captures; // captures is the number of their words
	u32 *stack, *top;
	u64 spent;
	// The notes: a number for each byte of code, 0 or that of a site; the sites; for each of them a
	// bit for each position, and for each number of rounds.
	u16 *numbers;
	struct site *sites;
	u64 *bits;
	u32 positions, refused;
	place run; // the end of the last run that can lead to a match
	struct sets *sets;
	u32 first[first_words];
};

#define failed_memory (-1)
#define failed_time (-2)

#define pause_after 10000

// prepare makes a matcher of an expression and a text. The matcher must be released.
void prepare(struct matcher *m, struct sets *sets, u32 context, place expression, place text, u32 length, u32 wide,
             u32 *registers);
void release_matcher(struct matcher *m);
void clear_sets(struct sets *sets);

// kept_sets returns the sets that are kept of an expression's code, or 0. They are valid until the next call: a
// matcher that has them must not be used after code of the handler has run.
struct sets *kept_sets(u32 context, u32 code);

// match finds a match at the position from, or behind it if the expression is not sticky. It returns 1, 0,
// or an error, which is negative.
int match(struct matcher *m, u32 from);

#define is_high(unit) (((unit) & 0xfc00) == 0xd800)
#define is_low(unit) (((unit) & 0xfc00) == 0xdc00)

// A method that cannot do something at once returns declined, and has had no effect.
static const value declined = value_of(kind_none, 0);
static const value exception = value_of(kind_exception, 0);

#define most_registers 64

struct method {
	u32 context, object, flags, global;
	u32 text, length, wide, unicode; // text is a string
	place units;
	u32 registers[most_registers];
	struct sets sets;
	struct matcher m;
};

u32 has_number(u32 function, u32 number);
u32 has_exec(u32 context, value self);
u32 is_common(u32 context, value self);
u32 is_method(u32 context, u32 i, u32 atom, u32 number);
u32 is_constructed(u32 context);

// open_expression makes a matcher of an expression and a string, unless it has too many captures.
u32 open_expression(struct method *of, u32 context, u32 object, u32 text);
u32 position(struct method *of, u32 capture);
u32 behind(struct method *of, u32 at);
void set_lastIndex(struct method *of, u32 index);
value regexp_match(u32 context, value self, u32 count, value *arguments);
