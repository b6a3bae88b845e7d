// Regular expressions for TypeScript modules. The function that finds a match replaces the engine's own:
// it runs the same instructions, and finds the same matches. It is faster, because
//
//   - it begins only where an expression can begin: at characters that are in the set of first
//     characters, at edges of words, at starts of lines, or nowhere else
//   - it remembers no alternative that the next character excludes
//   - it remembers a repeated character as one range of positions, and tests it by a bitmap
//   - it begins nowhere in a run of characters behind which the expression cannot go on
//   - after much work it notes which instructions were reached at which positions, and does not try
//     them again. So no expression takes exponential time, unless it has a back reference, or the
//     time is spent in a lookahead or a lookbehind, or in two counted groups, one inside of the other
//
// It is a backtracking matcher like the engine's. Its stack is memory of the engine's allocator, so
// it does not recurse. Registers are the captures, two words each, and then counters and positions
// of loops.
//
// The methods replace, match and split of an expression do at once what the engine does match by
// match, in common cases. Those whose results are arrays of matches are in matches.c.

#include "regexp.h"
#include "words.h"

// target is where a jump goes whose operand, its last one, is at the given place.
inlined place target(place operand) { return operand + 4 + (int)get32(operand); }

// ---- Characters ----

static u32 is_terminator(u32 c) { return c == '\n' || c == '\r' || c == 0x2028 || c == 0x2029; }

#define word_low 0x03ff000000000000ull
#define word_high 0x07fffffe87fffffeull
#define space_low 0x0000000100003e00ull
#define terminator_low 0x0000000000002400ull

static u32 is_space(u32 c) { return c < 64 ? space_low >> c & 1 : c >= 128 && lre_is_space(c); }

static u32 is_word(u32 c, u32 folded) {
	if (c < 128) return (c < 64 ? word_low >> c : word_high >> (c & 63)) & 1;
	return folded && (c == 0x17f || c == 0x212a);
}

// canonical is what characters that differ only in case have in common.
static u32 canonical(u32 c, u32 unicode) {
	if (c >= 128) return lre_canonicalize(c, unicode);
	if (unicode) return c - 'A' < 26 ? c | 0x20 : c;
	return c - 'a' < 26 ? c & ~0x20u : c;
}

// in_range16 and in_range32 say whether a character is in one of an instruction's ranges, which
// are in order. An end of 0xffff in the last one of 16 bits has no limit.
static u32 in_range16(place pc, u32 c) {
	u32 low = 0, high = get16(pc + 1) - 1;
	pc += 3;
	u32 last = get16(pc + 4 * high + 2);
	if (c >= 0xffff && last == 0xffff) return 1;
	if (c > last) return 0;
	while (low < high) {
		u32 middle = (low + high) / 2;
		if (c > get16(pc + 4 * middle + 2))
			low = middle + 1;
		else
			high = middle;
	}
	return c >= get16(pc + 4 * low);
}

static u32 in_range32(place pc, u32 c) {
	u32 low = 0, high = get16(pc + 1) - 1;
	pc += 3;
	if (c > get32(pc + 8 * high + 4)) return 0;
	while (low < high) {
		u32 middle = (low + high) / 2;
		if (c > get32(pc + 8 * middle + 4))
			low = middle + 1;
		else
			high = middle;
	}
	return c >= get32(pc + 8 * low);
}

// ranges is the size of an instruction's ranges.
inlined u32 ranges(place pc) { return get16(pc + 1) * (*pc >= op_range32 ? 8 : 4); }

// after returns the end of an instruction that matches one character, or 0 if it is another one.
inlined place after(place pc) {
	switch (*pc) {
	case op_char:
	case op_char_i:
		return pc + 3;
	case op_char32:
	case op_char32_i:
		return pc + 5;
	case op_dot:
	case op_any:
	case op_space:
	case op_not_space:
		return pc + 1;
	case op_range:
	case op_range_i:
	case op_range32:
	case op_range32_i:
		return pc + 3 + ranges(pc);
	}
	return 0;
}

// accepts says whether an instruction that matches one character matches c.
called u32 accepts(place pc, u32 c, u32 unicode) {
	switch (*pc) {
	case op_char:
		return c == get16(pc + 1);
	case op_char_i:
		return canonical(c, unicode) == get16(pc + 1);
	case op_char32:
		return c == get32(pc + 1);
	case op_char32_i:
		return canonical(c, unicode) == get32(pc + 1);
	case op_dot:
		return !is_terminator(c);
	case op_space:
		return is_space(c);
	case op_not_space:
		return !is_space(c);
	case op_range:
		return in_range16(pc, c);
	case op_range_i:
		return in_range16(pc, canonical(c, unicode));
	case op_range32:
		return in_range32(pc, c);
	case op_range32_i:
		return in_range32(pc, canonical(c, unicode));
	}
	return 1; // op_any
}

// length is that of an instruction, from four bits for each.
static u32 length(place pc) {
	u64 lengths = 0x5551111111155331;
	__asm__("" : "+r"(lengths)); // or the compiler makes a table of the three, which is data
	if (*pc >= 16) lengths = 0x11116aaaa6322111;
	__asm__("" : "+r"(lengths));
	if (*pc >= 32) lengths = 0x1225533332222;
	u32 bytes = lengths >> 4 * (*pc & 15) & 15;
	switch (*pc) {
	case op_back_reference:
	case op_back_reference_i:
	case op_backward_back_reference:
	case op_backward_back_reference_i:
		return bytes + pc[1];
	case op_range:
	case op_range_i:
	case op_range32:
	case op_range32_i:
		return bytes + ranges(pc);
	}
	return bytes;
}

// ---- Matcher ----

// ---- Sets ----

inlined void add(struct set *s, u32 c) {
	if (c >= 128)
		s->flags |= set_other;
	else if (c >= 64)
		s->high |= 1ull << (c & 63);
	else
		s->low |= 1ull << c;
}

inlined u64 ones(u32 from, u32 to) { return ~0ull >> (63 - to) & ~0ull << from; }

static void add_range(struct set *s, u32 from, u32 to) {
	if (to >= 128) s->flags |= set_other;
	if (from < 64) s->low |= ones(from, to < 63 ? to : 63);
	if (from < 128 && to >= 64) s->high |= ones(from < 64 ? 0 : from - 64, to < 127 ? to - 64 : 63);
}

#define capitals 0x07fffffeull // in the upper half of the ASCII characters; small letters are 32 bits above

// add_instruction adds the characters that an instruction matches. Those of an instruction that
// compares canonical characters are canonical: capitals, or small letters for Unicode.
static void add_instruction(struct set *s, place pc, u32 unicode) {
	struct set one = {0};
	switch (*pc) {
	case op_char:
	case op_char_i:
		add(&one, get16(pc + 1));
		break;
	case op_char32:
	case op_char32_i:
		add(&one, get32(pc + 1));
		break;
	case op_range:
	case op_range_i:
		for (u32 i = get16(pc + 1), at = 3; i > 0; i--, at += 4) add_range(&one, get16(pc + at), get16(pc + at + 2));
		break;
	case op_range32:
	case op_range32_i:
		for (u32 i = get16(pc + 1), at = 3; i > 0; i--, at += 8) add_range(&one, get32(pc + at), get32(pc + at + 4));
		break;
	case op_space:
		one = (struct set){space_low, 0, set_other};
		break;
	case op_not_space:
		one = (struct set){~space_low, ~0ull, set_other};
		break;
	case op_dot:
		one = (struct set){~terminator_low, ~0ull, set_other};
		break;
	default: // op_any
		one = (struct set){~0ull, ~0ull, set_other};
	}
	if (*pc == op_char_i || *pc == op_range_i || *pc == op_char32_i || *pc == op_range32_i) {
		if (unicode)
			one.high = one.high & ~capitals | one.high >> 32 & capitals;
		else
			one.high = one.high & ~(capitals << 32) | (one.high & capitals) << 32;
		one.flags = set_other;
	}
	s->low |= one.low;
	s->high |= one.high;
	s->flags |= one.flags;
}

#define after_start 0x80000000u // of a path: it has passed the start of a line
#define most_paths 64

// find follows the paths from an instruction until they match a character. later: the position is
// not the start of the text.
called void find(struct matcher *m, struct set *s, place from, u32 later) {
	if (after(from)) {
		*s = (struct set){0, 0, set_inside};
		add_instruction(s, from, m->unicode);
		return;
	}
	u32 open[most_paths], opened = 0, seen[most_paths], count = 0;
	*s = (struct set){0};
	u32 line = 0;
	for (place pc = from;;) {
		switch (*pc) {
		case op_line_start:
			if (later) goto ended;
			pc++;
			continue;
		case op_line_start_m:
			line = after_start;
			pc++;
			continue;
		case op_line_end:
			s->flags |= set_end | (line ? 0 : set_inside);
			goto ended;
		case op_line_end_m:
			s->low |= terminator_low;
			s->flags |= set_end | set_other | (line ? 0 : set_inside);
			goto ended;
		case op_split_goto_first:
		case op_split_next_first:
		case op_loop:
		case op_loop_split_goto_first:
		case op_loop_split_next_first:
		case op_loop_check_adv_split_goto_first:
		case op_loop_check_adv_split_next_first:
			for (u32 i = 0; i < count; i++)
				if (seen[i] == ((u32)pc | line)) goto ended;
			if (count == most_paths || opened == most_paths) goto unknown;
			seen[count++] = (u32)pc | line;
			u32 size = length(pc);
			open[opened++] = (u32)target(pc + size - 4) | line;
			pc += size;
			continue;
		case op_goto:
			pc = target(pc + 1);
			continue;
		case op_lookahead:
		case op_negative_lookahead:
			pc = target(pc + 1);
			continue;
		case op_save_start:
		case op_save_end:
		case op_save_reset:
		case op_set_i32:
		case op_set_char_pos:
		case op_check_advance:
		case op_word_boundary:
		case op_word_boundary_i:
		case op_not_word_boundary:
		case op_not_word_boundary_i:
			pc += length(pc);
			continue;
		}
		if (!after(pc)) goto unknown; // the end, a reference, or backwards
		add_instruction(s, pc, m->unicode);
		if (!line) s->flags |= set_inside;
	ended:
		if (opened == 0) return;
		line = open[--opened] & after_start;
		pc = (place)(open[opened] & ~after_start);
		continue;
	unknown:
		s->low = s->high = ~0ull;
		s->flags = set_other | set_end | set_any | set_inside;
		return;
	}
}

inlined u32 slot_of(place pc) { return ((u32)pc ^ (u32)pc >> 5) % sets_kept; }

inlined const struct set *set_of(struct matcher *m, place pc) {
	u32 slot = slot_of(pc);
	if (m->sets->keys[slot] != (u32)pc) {
		m->sets->keys[slot] = (u32)pc;
		find(m, &m->sets->of[slot], pc, 0);
	}
	return &m->sets->of[slot];
}

inlined u32 has(const struct set *s, u32 c) {
	return c < 128 ? (c & 64 ? s->high : s->low) >> (c & 63) & 1 : s->flags & set_other;
}

// ---- Notes ----

// An instruction that makes an alternative is reached at a position, with a number of rounds left if
// it is in a counted group. What was found from there on depends on nothing else, unless it is in
// a lookahead or lookbehind, or a group that may be empty has not advanced. As no match was found before, none
// will be.
//
// note finds the sites. It allocates nothing if there is a back reference, whose captures make a
// difference, and less than most_bits.
#define most_bits (1u << 25)
#define most_loops 64

called void note(struct matcher *m) {
	place end = m->finish;
	struct { u32 counter, rounds, first; } loops[most_loops]; // first: of the sites in it
	u32 count = 0, depth = 0, bits = 0, size = end - m->code;
	m->refused = 1;
	m->positions = (u32)(m->end - m->text >> m->wide) + 1;
	for (place pc = m->code; pc < end; pc += length(pc)) {
		if (*pc >= op_back_reference && *pc <= op_backward_back_reference_i) return;
		if (*pc == op_split_goto_first || *pc == op_split_next_first) count++;
		if (*pc >= op_loop_split_goto_first && *pc <= op_loop_check_adv_split_next_first) count++;
	}
	if (count == 0 || size > 0xffff) return;
	u32 numbers = (2 * size + 7) & ~7u, sites = ((count + 1) * sizeof(struct site) + 7) & ~7u;
	u8 *made = (u8 *)lre_realloc(m->context, 0, numbers + sites);
	if (made == 0) return;
	__builtin_memset(made, 0, numbers);
	m->numbers = (u16 *)made;
	m->sites = (struct site *)(made + numbers);
	place inside = m->code; // the end of a lookahead
	count = 0;
	for (place pc = m->begin; pc < end; pc += length(pc)) {
		switch (*pc) {
		case op_lookahead:
		case op_negative_lookahead:
			if (target(pc + 1) > inside) inside = target(pc + 1);
			continue;
		case op_set_i32:
		case op_set_char_pos:
			if (depth == most_loops) goto none;
			loops[depth].counter = *pc == op_set_i32;
			loops[depth].rounds = *pc == op_set_i32 ? get32(pc + 2) : 0;
			loops[depth++].first = count;
			continue;
		case op_check_advance:
			depth--;
			continue;
		case op_loop_check_adv_split_goto_first:
		case op_loop_check_adv_split_next_first:
			depth--;
			break;
		case op_loop:
		case op_loop_split_goto_first:
		case op_loop_split_next_first:
		case op_split_goto_first:
		case op_split_next_first:
			break;
		default:
			continue;
		}
		u32 counters = 0;
		struct site *s = &m->sites[count];
		*s = (struct site){.counter = no_counter, .registers = depth};
		for (u32 i = 0; i < depth; i++) {
			if (loops[i].counter) {
				counters++;
				s->counter = i;
				s->rounds = s->most = loops[i].rounds;
			}
		}
		if (*pc != op_loop && counters < 2 && pc >= inside) m->numbers[pc - m->code] = ++count;
		if (*pc >= op_loop && *pc <= op_loop_check_adv_split_next_first) {
			u32 i = --depth;
			if (*pc == op_loop || loops[i].rounds != 0x7fffffff) continue;
			for (u32 n = loops[i].first; n < count; n++)
				if (m->sites[n].counter == i) m->sites[n].most = loops[i].rounds - get32(pc + 2);
		}
	}
	for (u32 i = 0; i < count; i++) {
		struct site *s = &m->sites[i];
		u64 more = (u64)m->positions * (s->counter == no_counter ? 1 : s->most + 1);
		s->first = bits;
		if (bits + more > most_bits)
			s->first = ~0u; // it is not noted
		else
			bits += more;
	}
	u32 bytes = (bits >> 6) * 8 + 8;
	m->bits = (u64 *)lre_realloc(m->context, 0, bytes);
	if (m->bits == 0) goto none;
	__builtin_memset(m->bits, 0, bytes);
	return;
none:
	lre_realloc(m->context, (u32)m->numbers, 0);
	m->numbers = 0;
}

// noted notes that an instruction is reached, and says whether it was before.
called u32 noted(struct matcher *m, place pc, place at, u32 wide) {
	u32 number = m->numbers[pc - m->code];
	if (number == 0) return 0;
	struct site *s = &m->sites[number - 1];
	if (s->first == ~0u) return 0;
	u32 *registers = m->registers + m->captures, position = at - m->text >> wide;
	for (u32 i = 0; i < s->registers; i++)
		if (i != s->counter && registers[i] == (u32)at) return 0;
	if (s->counter != no_counter) {
		u32 rounds = s->rounds - registers[s->counter];
		position += m->positions * (rounds < s->most ? rounds : s->most);
	}
	position += s->first;
	u64 *word = m->bits + (position >> 6), bit = 1ull << (position & 63);
	if (*word & bit) return 1;
	*word |= bit;
	return 0;
}

// pause is called after some work, at least pause_after. It says whether the run is over.
called u32 pause(struct matcher *m, u32 work) {
	if (interrupt()) return 1;
	m->spent += work;
	if (!m->refused && m->spent > 8ull * (m->end - m->text)) note(m);
	return 0;
}

// ---- Stack ----

// The stack has frames, and above each the old values of registers: pairs of number and value. A
// frame is what to try next:
//
//	instruction · position · limit · kind (3 bits), where the frame below ends
#define frame_words 4

enum kind {
	kind_choice,   // go on at the instruction and the position
	kind_run,      // and, if that fails, at each one before it down to the limit
	kind_lazy,     // the instruction is that of a loop: match one character more, and go on behind it
	kind_ahead,    // a lookahead, which has failed
	kind_negative, // a negative one, so go on
};

called u32 grow(struct matcher *m, u32 words) {
	u32 size = (m->top - m->stack) * 3 / 2;
	if (size < words) size = words;
	u32 first = m->stack == m->first;
	u32 *made = (u32 *)lre_realloc(m->context, first ? 0 : (u32)m->stack, size * 4);
	if (made == 0) return 0;
	if (first) __builtin_memcpy(made, m->first, sizeof(m->first));
	m->stack = made;
	m->top = made + size;
	return 1;
}

// ---- Text ----

// A text has bytes, units of 16 bits, or such units that may be halves of a character.
enum text { text_bytes, text_units, text_pairs };

#define step(text) ((text) == text_bytes ? 1 : 2)

inlined u32 unit(place at, enum text text) { return text == text_bytes ? *at : *(const u16 *)at; }

inlined u32 pair(u32 high, u32 low) { return ((high & 0x3ff) << 10 | (low & 0x3ff)) + 0x10000; }

// forward reads a character and goes behind it, back goes before it and reads it.
inlined u32 forward(place *at, place end, enum text text) {
	u32 c = unit(*at, text);
	*at += step(text);
	if (text == text_pairs && is_high(c) && *at < end && is_low(unit(*at, text))) {
		c = pair(c, unit(*at, text));
		*at += 2;
	}
	return c;
}

inlined u32 back(place *at, place begin, enum text text) {
	*at -= step(text);
	u32 c = unit(*at, text);
	if (text == text_pairs && is_low(c) && *at > begin && is_high(unit(*at - 2, text))) {
		*at -= 2;
		c = pair(unit(*at, text), c);
	}
	return c;
}

inlined u32 may(const struct set *s, place at, place end, enum text text) {
	return at == end ? s->flags & set_end : has(s, unit(at, text));
}

// maybe is 0 if an instruction is known to fail at a position. Its set is made when it is reached for
// the second time.
inlined u32 maybe(struct matcher *m, place pc, place at, place end, enum text text) {
	u32 slot = slot_of(pc);
	u32 key = m->sets->keys[slot];
	if (key == (u32)pc || key == ~(u32)pc) return may(set_of(m, pc), at, end, text);
	m->sets->keys[slot] = ~(u32)pc;
	return *pc != op_char || at != end && unit(at, text) == get16(pc + 1);
}

// span goes over characters that an instruction matches, but not over more than most. low is where it was
// after the least number of them; if there are fewer, it stays 0.
inlined place span(struct matcher *m, place pc, place at, u32 least, u32 most, place *low, enum text text) {
	const struct set *s = set_of(m, pc);
	place end = m->end;
	if (text == text_pairs) {
		for (u32 count = 0;; count++) {
			if (count == least) *low = at;
			if (count == most || at == end) return at;
			place next = at;
			u32 c = forward(&next, end, text);
			if (!has(s, c) || c >= 128 && !accepts(pc, c, m->unicode)) return at;
			at = next;
		}
	}
	place begin = at;
	if (most < (u32)(end - at) / step(text)) end = at + most * step(text);
	u64 low_bits = s->low, high_bits = s->high;
	u32 other = s->flags & set_other;
	for (; at < end; at += step(text)) {
		u32 c = unit(at, text);
		if (c < 128 ? !((c & 64 ? high_bits : low_bits) >> (c & 63) & 1) : !other || !accepts(pc, c, m->unicode)) break;
	}
	if ((u32)(at - begin) / step(text) >= least) *low = begin + least * step(text);
	return at;
}

// next_byte finds a byte.
inlined place next_byte(place at, place end, u32 byte) {
	for (u64 all = every(byte); end - at >= 8; at += 8) {
		u64 found = zeros(load64(at) ^ all);
		if (found) return at + (__builtin_ctzll(found) >> 3);
	}
	while (at < end && *at != byte) at++;
	return at;
}

// begin_sets finds what an expression can begin with.
called void begin_sets(struct matcher *m) {
	place pc = m->begin;
	while (*pc == op_save_start) pc += 2;
	m->sets->boundary = *pc == op_word_boundary;
	struct set *s = &m->sets->starts, *behind = &m->sets->behind;
	find(m, s, pc, 1);
	m->sets->started = 1;
	pc += m->sets->boundary;
	while (*pc == op_save_start) pc += 2;
	place loop = after(pc);
	m->sets->run = 0;
	if (loop == 0 || *loop != op_split_goto_first || target(loop + 1) != pc || s->flags != set_inside) return;
	find(m, behind, loop + 5, 1);
	m->sets->run = !(behind->flags & set_any || s->low & behind->low || s->high & behind->high);
}

// run_fails says whether no attempt in a run can succeed, and sets at to the end of the run then.
inlined u32 run_fails(struct matcher *m, place *at, enum text text) {
	const struct set *s = &m->sets->starts;
	u64 low = s->low, high = s->high;
	place end = m->end, to = *at;
	do to += step(text);
	while (to < end && unit(to, text) < 128 && (unit(to, text) & 64 ? high : low) >> (unit(to, text) & 63) & 1);
	if (may(&m->sets->behind, to, end, text)) {
		m->run = to;
		return 0;
	}
	*at = to;
	return 1;
}

// next_start finds the next position where an attempt can succeed, or 0.
inlined place next_start(struct matcher *m, place at, enum text text) {
	const struct set *s = &m->sets->starts;
	place end = m->end;
	if (at == end) return 0;
	if (!m->sets->started) begin_sets(m);
	forward(&at, end, text);
	if (!(s->flags & set_inside)) {
		if (s->flags == 0 && s->low == 0 && s->high == 0) return 0;
		for (;; at += step(text)) {
			while (!is_terminator(unit(at - step(text), text))) {
				if (at == end) return 0;
				at += step(text);
			}
			if (may(s, at, end, text)) return at;
			if (at == end) return 0;
		}
	}
	if (s->flags & set_any) return at;
	u64 low = s->low, high = s->high;
	if (text == text_bytes && !(s->flags & set_other) && !(low & low - 1) && !(high & high - 1) && !low != !high) {
		at = next_byte(at, end, low ? __builtin_ctzll(low) : 64 + __builtin_ctzll(high));
	} else {
		u32 other = s->flags & set_other, boundary = m->sets->boundary, run = text != text_pairs && m->sets->run;
		while (at < end) {
			u32 c = unit(at, text);
			if (c < 128 ? (c & 64 ? high : low) >> (c & 63) & 1 : other) {
				if (run && at >= m->run && run_fails(m, &at, text)) continue;
				if (!boundary || is_word(c, 0) != is_word(unit(at - step(text), text), 0)) return at;
			}
			if (text == text_pairs)
				forward(&at, end, text);
			else
				at += step(text);
		}
	}
	return at < end || s->flags & set_end ? at : 0;
}

// ---- Instructions ----

// search returns 1 if there is a match, 0 if there is none, or an error.
inlined int search(struct matcher *m, place start, enum text text) {
	const place begin = m->text, end = m->end;
	const u32 unicode = m->unicode, captures = m->captures, wide = text != text_bytes;
	u32 *const registers = m->registers;
	u32 *stack = m->stack, *top = m->top, *sp = stack, *bp = stack;
	int work = pause_after;
	place pc = m->begin, at = start;

#define need(words)                                                 \
	if (__builtin_expect(top - sp < (int)(words), 0)) {             \
		u32 used = sp - stack, below = bp - stack;                  \
		if (!grow(m, used + (words))) return failed_memory;         \
		stack = m->stack, top = m->top;                             \
		sp = stack + used, bp = stack + below;                      \
	}
#define push(kind, instruction, position, limit)                     \
	{                                                                \
		need(frame_words);                                           \
		sp[0] = (u32)(instruction), sp[1] = (u32)(position);         \
		sp[2] = (u32)(limit), sp[3] = (u32)(bp - stack) << 3 | (kind); \
		bp = sp += frame_words;                                      \
	}
#define set_register(index, value)                            \
	{                                                         \
		if (bp != stack) {                                    \
			need(2);                                          \
			sp[0] = index, sp[1] = registers[index], sp += 2; \
		}                                                     \
		registers[index] = (u32)(value);                      \
	}
#define set_counter(index, value)                             \
	{                                                         \
		u32 *old = sp;                                        \
		while (old > bp && sp - old < 8 && old[-2] != index) old -= 2; \
		if (old > bp && sp - old < 8)                         \
			registers[index] = (u32)(value);                  \
		else                                                  \
			set_register(index, value)                        \
	}
#define spend(amount)                                         \
	if ((work -= (amount)) < 0) {                             \
		if (pause(m, pause_after - work)) return failed_time; \
		work = pause_after;                                   \
	}

	goto reset;
fail:
	spend(1);
	for (;;) {
		if (bp == stack) {
			start = m->repeat ? next_start(m, start, text) : 0;
			if (start == 0) return 0;
			sp = stack;
			pc = m->begin, at = start;
		reset:
			for (u32 i = 0; i < captures; i++) registers[i] = 0;
			break;
		}
		while (sp > bp) {
			sp -= 2;
			registers[sp[0]] = sp[1];
		}
		u32 *frame = bp - frame_words, *below = stack + (frame[3] >> 3);
		pc = (place)frame[0], at = (place)frame[1];
		switch (frame[3] & 7) {
		case kind_ahead:
			sp = frame, bp = below;
			continue;
		case kind_run: {
			const struct set *s = set_of(m, pc);
			place low = (place)frame[2], from = at;
			do back(&at, low, text);
			while (at > low && !may(s, at, end, text));
			frame[1] = (u32)at;
			spend(from - at >> wide);
			if (at > low) break;
			sp = frame, bp = below;
			if (!may(s, at, end, text)) continue;
			break;
		}
		case kind_lazy: {
			u32 star = *pc == op_split_goto_first;
			place x = star ? pc + 5 : target(pc + 1), next = star ? target(pc + 1) : pc + 5, from = at;
			struct set one = *set_of(m, x);
			const struct set *s = set_of(m, next);
			u32 found = 0;
			while (!found && at < end) {
				u32 c = forward(&at, end, text);
				if (!has(&one, c) || c >= 128 && !accepts(x, c, unicode)) break;
				if (m->bits && noted(m, pc, at, wide)) break;
				found = may(s, at, end, text);
			}
			spend(at - from >> wide);
			if (!found) {
				sp = frame, bp = below;
				continue;
			}
			frame[1] = (u32)at;
			pc = next;
			break;
		}
		default:
			sp = frame, bp = below;
		}
		break;
	}
	for (;;) {
		switch (*pc) {
		case op_char:
			do {
				if (at == end) goto fail;
				u32 c = forward(&at, end, text);
				if (c != get16(pc + 1)) goto fail;
				pc += 3;
			} while (*pc == op_char);
			continue;
		case op_char_i:
			if (at == end) goto fail;
			if (canonical(forward(&at, end, text), unicode) != get16(pc + 1)) goto fail;
			pc += 3;
			continue;
		case op_range: {
			if (at == end) goto fail;
			u32 c = forward(&at, end, text), count = get16(pc + 1);
			if (count <= 4) {
				pc += 3;
				place last = pc + 4 * (count - 1);
				while (pc < last && c > get16(pc + 2)) pc += 4;
				if (c < get16(pc) || c > get16(pc + 2) && !(pc == last && get16(pc + 2) == 0xffff)) goto fail;
				pc = last + 4;
				continue;
			}
			if (!in_range16(pc, c)) goto fail;
			pc += 3 + 4 * count;
			continue;
		}
		case op_dot:
			if (at == end || is_terminator(forward(&at, end, text))) goto fail;
			pc++;
			continue;
		case op_any:
			if (at == end) goto fail;
			forward(&at, end, text);
			pc++;
			continue;
		case op_char32:
		case op_char32_i:
		case op_space:
		case op_not_space:
		case op_range_i:
		case op_range32:
		case op_range32_i:
			if (at == end || !accepts(pc, forward(&at, end, text), unicode)) goto fail;
			pc = after(pc);
			continue;
		case op_line_start:
			if (at != begin) goto fail;
			pc++;
			continue;
		case op_line_start_m:
			if (at != begin && !is_terminator(unit(at - step(text), text))) goto fail;
			pc++;
			continue;
		case op_line_end:
			if (at != end) goto fail;
			pc++;
			continue;
		case op_line_end_m:
			if (at != end && !is_terminator(unit(at, text))) goto fail;
			pc++;
			continue;
		case op_goto:
			pc = target(pc + 1);
			spend(1);
			continue;
		case op_split_goto_first:
		case op_split_next_first: {
			place next = pc + 5, other = target(pc + 1), x = 0, behind = 0;
			if (other > pc) { // is it a loop of one character, which is left to the other side?
				if (other[-5] == op_goto && other + (int)get32(other - 4) == pc && after(next) == other - 5) x = next, behind = other;
			} else if (after(other) == pc) {
				x = other, behind = next;
			}
			u32 greedy = (*pc == op_split_next_first) == (x == next);
			if (x && greedy) {
				place low = at, from = at;
				if (m->bits == 0) {
					at = span(m, x, at, 0, ~0u, &low, text);
				} else {
					for (;;) {
						place was = at;
						if (noted(m, pc, at, wide)) {
							if (at == low) goto fail;
							back(&at, low, text);
							break;
						}
						if (at == end || !accepts(x, forward(&at, end, text), unicode)) {
							at = was;
							break;
						}
					}
				}
				spend(at - from >> wide);
				pc = behind;
				if (at == low) continue;
				push(kind_run, behind, at, low);
				if (!maybe(m, behind, at, end, text)) goto fail;
				continue;
			}
			if (m->bits && noted(m, pc, at, wide)) goto fail;
			if (x) {
				push(kind_lazy, pc, at, 0);
				if (!maybe(m, behind, at, end, text)) goto fail;
				pc = behind;
				continue;
			}
			place one = *pc == op_split_next_first ? next : other, two = *pc == op_split_next_first ? other : next;
			if (!maybe(m, one, at, end, text)) {
				pc = two;
				continue;
			}
			if (maybe(m, two, at, end, text)) push(kind_choice, two, at, 0);
			pc = one;
			continue;
		}
		case op_match:
			return 1;
		case op_save_start:
		case op_save_end: {
			u32 index = 2 * pc[1] + (*pc - op_save_start);
			set_register(index, at);
			pc += 2;
			continue;
		}
		case op_save_reset:
			for (u32 i = 2 * pc[1]; i < 2 * pc[2] + 2u; i++) set_register(i, 0);
			pc += 3;
			continue;
		case op_set_i32: {
			place x = pc + 6, loop = after(x);
			if (loop && (*loop == op_loop || *loop == op_loop_split_goto_first)) {
				u32 most = get32(pc + 2), least = *loop == op_loop ? most : most - get32(loop + 2);
				place low = 0, from = at;
				at = span(m, x, at, least, most == 0x7fffffff ? ~0u : most, &low, text);
				spend(at - from >> wide);
				if (low == 0) goto fail;
				pc = loop + length(loop);
				if (at == low) continue;
				push(kind_run, pc, at, low);
				if (!maybe(m, pc, at, end, text)) goto fail;
				continue;
			}
			set_counter(captures + pc[1], get32(pc + 2));
			pc += 6;
			continue;
		}
		case op_loop: {
			u32 index = captures + pc[1], left = registers[index] - 1;
			set_counter(index, left);
			pc = left ? target(pc + 2) : pc + 6;
			spend(1);
			continue;
		}
		case op_loop_split_goto_first:
		case op_loop_split_next_first:
		case op_loop_check_adv_split_goto_first:
		case op_loop_check_adv_split_next_first: {
			u32 index = captures + pc[1], left = registers[index] - 1, limit = get32(pc + 2);
			set_counter(index, left);
			spend(1);
			if (left > limit) {
				pc = target(pc + 6);
				continue;
			}
			if (*pc >= op_loop_check_adv_split_goto_first && registers[index + 1] == (u32)at && left != limit) goto fail;
			if (left == 0) {
				pc += 10;
				continue;
			}
			if (m->bits && noted(m, pc, at, wide)) goto fail;
			u32 again = *pc == op_loop_split_goto_first || *pc == op_loop_check_adv_split_goto_first;
			place one = again ? target(pc + 6) : pc + 10, two = again ? pc + 10 : target(pc + 6);
			push(kind_choice, two, at, 0);
			pc = one;
			continue;
		}
		case op_set_char_pos:
			set_counter(captures + pc[1], at);
			pc += 2;
			continue;
		case op_check_advance:
			if (registers[captures + pc[1]] == (u32)at) goto fail;
			pc += 2;
			continue;
		case op_word_boundary:
		case op_word_boundary_i:
		case op_not_word_boundary:
		case op_not_word_boundary_i: {
			u32 folded = *pc == op_word_boundary_i || *pc == op_not_word_boundary_i;
			u32 before = at != begin && is_word(unit(at - step(text), text), folded);
			u32 behind = at != end && is_word(unit(at, text), folded);
			if ((before != behind) != (*pc == op_word_boundary || *pc == op_word_boundary_i)) goto fail;
			pc++;
			continue;
		}
		case op_back_reference:
		case op_back_reference_i:
		case op_backward_back_reference:
		case op_backward_back_reference_i: {
			u32 code = *pc, count = pc[1];
			place from = 0, to = 0;
			pc += 2;
			for (u32 i = 0; i < count && (from == 0 || to == 0); i++) {
				from = (place)registers[2 * pc[i]];
				to = (place)registers[2 * pc[i] + 1];
			}
			pc += count;
			if (from == 0 || to == 0) continue;
			u32 folded = code == op_back_reference_i || code == op_backward_back_reference_i;
			u32 backward = code >= op_backward_back_reference;
			spend(to - from >> wide);
			for (place low = from; from < to;) {
				if (at == (backward ? begin : end)) goto fail;
				u32 one = backward ? back(&to, low, text) : forward(&from, to, text);
				u32 other = backward ? back(&at, begin, text) : forward(&at, end, text);
				if (folded) one = canonical(one, unicode), other = canonical(other, unicode);
				if (one != other) goto fail;
			}
			continue;
		}
		case op_lookahead:
		case op_negative_lookahead:
			push(*pc == op_lookahead ? kind_ahead : kind_negative, target(pc + 1), at, 0);
			pc += 5;
			continue;
		case op_lookahead_match: {
			// The frames go, but the old values stay for the frames below. Each frame gets the
			// end of the old values above it, so that they can be moved from the lowest one on.
			u32 *end_of = sp, *frame;
			for (u32 kind = ~0u; kind != kind_ahead; end_of = frame) {
				frame = bp - frame_words;
				kind = frame[3] & 7;
				bp = stack + (frame[3] >> 3);
				frame[3] = (u32)end_of;
			}
			pc = (place)frame[0], at = (place)frame[1];
			u32 *to = frame;
			if (bp != stack) {
				while (frame < sp) {
					u32 *old = frame + frame_words;
					frame = (u32 *)frame[3];
					while (old < frame) *to++ = *old++;
				}
			}
			sp = to;
			continue;
		}
		case op_negative_lookahead_match:
			for (u32 kind = ~0u; kind != kind_negative;) {
				while (sp > bp) {
					sp -= 2;
					registers[sp[0]] = sp[1];
				}
				sp = bp - frame_words;
				kind = sp[3] & 7;
				bp = stack + (sp[3] >> 3);
			}
			goto fail;
		case op_prev:
			if (at == begin) goto fail;
			back(&at, begin, text);
			pc++;
			continue;
		}
		__builtin_trap();
	}
}

called int search_bytes(struct matcher *m, place start) { return search(m, start, text_bytes); }
called int search_units(struct matcher *m, place start) { return search(m, start, text_units); }
called int search_pairs(struct matcher *m, place start) { return search(m, start, text_pairs); }

// What an expression that is not sticky begins with: match any character, until an attempt succeeds.
#define prologue_bytes 11

inlined u32 has_prologue(place pc) {
	return pc[0] == op_split_goto_first && get32(pc + 1) == 6 && pc[5] == op_any && pc[6] == op_goto && get32(pc + 7) == -11u;
}

void prepare(struct matcher *m, struct sets *sets, u32 context, place expression, place text, u32 length, u32 wide, u32 *registers) {
	m->context = context;
	m->unicode = (get16(expression) & flags_unicode) != 0;
	m->code = expression + expression_code;
	m->finish = m->code + get32(expression + expression_size);
	m->repeat = has_prologue(m->code);
	m->begin = m->code + (m->repeat ? prologue_bytes : 0);
	m->text = text;
	m->end = text + (length << wide);
	m->wide = wide;
	m->registers = registers;
	m->captures = 2 * expression[expression_captures];
	m->run = text;
	m->stack = m->first;
	m->top = m->first + first_words;
	m->spent = m->refused = 0;
	m->numbers = 0;
	m->bits = 0;
	m->sets = sets;
}

void clear_sets(struct sets *sets) {
	sets->started = 0;
	for (u32 i = 0; i < sets_kept; i++) sets->keys[i] = 0;
}

void release_matcher(struct matcher *m) {
	if (m->stack != m->first) lre_realloc(m->context, (u32)m->stack, 0);
	if (m->numbers) lre_realloc(m->context, (u32)m->numbers, 0);
	if (m->bits) lre_realloc(m->context, (u32)m->bits, 0);
}

int match(struct matcher *m, u32 from) {
	if (m->bits) { // what led to a match did not fail
		lre_realloc(m->context, (u32)m->numbers, 0);
		lre_realloc(m->context, (u32)m->bits, 0);
		m->numbers = 0;
		m->bits = 0;
		m->spent = m->refused = 0;
	}
	place start = m->text + (from << m->wide);
	if (!m->wide) return search_bytes(m, start);
	if (!m->unicode) return search_units(m, start);
	if (start > m->text && start < m->end && is_low(unit(start, text_units)) && is_high(unit(start - 2, text_units))) start -= 2;
	return search_pairs(m, start);
}

// regexp_execute finds a match, and stores the captures, which are addresses in the text, or 0.
int export(regexp_execute)(u32 *registers, place expression, place text, u32 from, u32 length, u32 wide, u32 context) {
	struct sets sets;
	struct matcher m;
	clear_sets(&sets);
	prepare(&m, &sets, context, expression, text, length, wide, registers);
	int result = match(&m, from);
	release_matcher(&m);
	return result;
}

// ---- Methods ----

// The methods below do at once what the engine does match by match, for expressions whose class has not
// been changed. They call no code of the handler. What they cannot do they decline without an effect.
// So does an error: the engine's method will meet it, too.
u32 has_number(u32 function, u32 number) {
	return *(u16 *)(function + object_class) == class_function && *(u16 *)(function + function_number) == number;
}

// is_getter says whether a property of an object is a getter of the language.
inlined u32 is_getter(struct property *names, value *values, u32 i, u32 atom, u32 number, u32 magic) {
	u32 getter = address_of(values[i]);
	return names[i].atom == atom && flags_of(names + i) == flags_getter && has_number(getter, number) && load32(getter + function_magic) >> 16 == magic;
}

// has_exec says whether an object has the method exec of the language, and no property but lastIndex, a whole
// number.
u32 has_exec(u32 context, value self) {
	if (kind_of(self) != kind_object) return 0;
	u32 object = address_of(self);
	if (*(u16 *)(object + object_class) != class_regexp) return 0;
	u32 shape = load32(object + object_shape), prototype = address_of(((value *)load32(context + context_prototypes))[class_regexp]);
	struct property *names = properties(shape);
	if (load32(shape + shape_prototype) != prototype || load32(shape + shape_count) != 1) return 0;
	if (names->atom != atom_lastIndex || flags_of(names) != flag_writable || kind_of(*(value *)load32(object + object_values)) != kind_int) return 0;
	shape = load32(prototype + object_shape);
	if (load32(shape + shape_count) < 11) return 0;
	names = properties(shape) + 10;
	if (names->atom != atom_exec) return 0;
	value exec = ((value *)load32(prototype + object_values))[10];
	if (flags_of(names) == flags_later) return 1;
	return flags_of(names) == flags_method && kind_of(exec) == kind_object && has_number(address_of(exec), number_exec);
}

// is_common says whether an object has the class that the language defines, without a change that
// could be noticed in its methods, and only the property lastIndex, a number.
u32 is_common(u32 context, value self) {
	if (!has_exec(context, self)) return 0;
	u32 prototype = address_of(((value *)load32(context + context_prototypes))[class_regexp]);
	struct property *names = properties(load32(prototype + object_shape));
	value *values = (value *)load32(prototype + object_values);
	return is_getter(names, values, 0, atom_flags, number_flags, 0) && is_getter(names, values, 2, atom_global, number_flag, 1) &&
	       is_getter(names, values, 3, atom_ignoreCase, number_flag, 2) && is_getter(names, values, 4, atom_multiline, number_flag, 4) &&
	       is_getter(names, values, 5, atom_dotAll, number_flag, 8) && is_getter(names, values, 6, atom_unicode, number_flag, 16) &&
	       is_getter(names, values, 7, atom_unicodeSets, number_flag, 256) && is_getter(names, values, 8, atom_sticky, number_flag, 32) &&
	       is_getter(names, values, 9, atom_hasIndices, number_flag, 64);
}

u32 open_expression(struct method *of, u32 context, u32 object, u32 text) {
	u32 code = load32(object + regexp_code), string = load32(text);
	place expression = (place)units(code);
	if (2 * expression[expression_captures] + expression[expression_registers] > most_registers) return 0;
	of->context = context;
	of->object = object;
	of->text = text;
	of->length = string & ~string_wide;
	of->wide = (string & string_wide) != 0;
	of->units = (place)units(text);
	of->flags = get16(expression);
	of->global = of->flags & flags_global;
	of->unicode = of->flags & flags_unicode;
	struct sets *sets = kept_sets(context, code);
	if (sets == 0) clear_sets(sets = &of->sets);
	prepare(&of->m, sets, context, expression, of->units, of->length, of->wide, of->registers);
	return 1;
}

// open_method makes a matcher of the object and the text of a method, if it can be done at once.
static u32 open_method(struct method *of, u32 context, value self, value text) {
	return kind_of(text) == kind_string && is_common(context, self) && open_expression(of, context, address_of(self), address_of(text)) &&
	       !(of->flags & flags_sticky);
}

u32 position(struct method *of, u32 capture) { return (place)of->registers[capture] - of->units >> of->wide; }

// behind is where to go on after an empty match.
u32 behind(struct method *of, u32 at) {
	const u16 *wide = (const u16 *)of->units;
	return at + 1 < of->length && of->wide && of->unicode && is_high(wide[at]) && is_low(wide[at + 1]) ? at + 2 : at + 1;
}

void set_lastIndex(struct method *of, u32 index) {
	*(value *)load32(of->object + object_values) = value_of(kind_int, index);
}

// A list of words, on the stack until it is too long.
#define first_list 256

struct list {
	u32 context, *at, count, room, first[first_list];
};

static void open_list(struct list *l, u32 context) {
	l->context = context;
	l->at = l->first;
	l->count = 0;
	l->room = first_list;
}

static u32 append(struct list *l, u32 word) {
	if (l->count == l->room) {
		u32 first = l->at == l->first;
		u32 *more = (u32 *)lre_realloc(l->context, first ? 0 : (u32)l->at, 2 * l->room * 4);
		if (more == 0) return 0;
		if (first) __builtin_memcpy(more, l->first, sizeof(l->first));
		l->at = more;
		l->room *= 2;
	}
	l->at[l->count++] = word;
	return 1;
}

static void free_list(struct list *l) {
	if (l->at != l->first) lre_realloc(l->context, (u32)l->at, 0);
}

// find_all appends the start and the end of each match, or of the first one, and says whether it could.
static u32 find_all(struct method *of, struct list *found) {
	for (u32 from = 0; from <= of->length;) {
		int result = match(&of->m, from);
		if (result < 0) return 0;
		if (result == 0) break;
		u32 start = position(of, 0), end = position(of, 1);
		if (!append(found, start) || !append(found, end)) return 0;
		if (!of->global) break;
		from = end > start ? end : behind(of, end);
	}
	return 1;
}

// write copies units to a string that is as wide, or wider, and returns the bits that are in them.
static u32 write(u32 to, u32 to_wide, u32 at, place from, u32 from_wide, u32 count) {
	u32 bits = 0;
	if (!to_wide) {
		u8 *out = (u8 *)to + at;
		if (count > 16)
			__builtin_memcpy(out, from, count);
		else
			while (count-- > 0) *out++ = *from++;
		return 0;
	}
	u16 *out = (u16 *)to + at;
	for (u32 i = 0; i < count; i++) bits |= out[i] = from_wide ? ((const u16 *)from)[i] : from[i];
	return bits;
}

// narrow returns a string of bytes if a new string of wide units has none that needs more, as the engine
// does.
static u32 narrow(u32 context, u32 string, u32 count, u32 bits) {
	if (bits > 0xff) return string;
	u32 made = js_alloc_string(context, count, 0);
	if (made) {
		for (u32 i = 0; i < count; i++) ((u8 *)made + string_data)[i] = ((u16 *)(string + string_data))[i];
		((u8 *)made + string_data)[count] = 0;
	}
	JS_FreeValue(context, value_of(kind_string, string));
	return made;
}

// part makes a string of a part of the text.
static value part(struct method *of, u32 start, u32 end) {
	u32 bits = 0, count = end - start;
	if (count == 0) return JS_NewStringLen(of->context, 0, 0);
	place from = of->units + (start << of->wide);
	if (of->wide)
		for (u32 i = 0; i < count; i++) bits |= ((const u16 *)from)[i];
	u32 wide = bits > 0xff, made = js_alloc_string(of->context, count, wide);
	if (made == 0) return exception;
	if (wide || !of->wide)
		write(made + string_data, wide, 0, from, of->wide, count);
	else
		for (u32 i = 0; i < count; i++) ((u8 *)made + string_data)[i] = ((const u16 *)from)[i];
	if (!wide) ((u8 *)made + string_data)[count] = 0;
	return value_of(kind_string, made);
}

#define most_units 0x3fffffff // of a string

static value replaced(struct method *of, struct list *found, u32 by) {
	u32 by_count = load32(by) & ~string_wide, by_wide = (load32(by) & string_wide) != 0;
	place by_units = (place)units(by);
	for (u32 i = 0; i < by_count; i++)
		if ((by_wide ? ((const u16 *)by_units)[i] : by_units[i]) == '$') return declined;
	if (!find_all(of, found)) return declined;
	u64 count = of->length;
	for (u32 i = 0; i < found->count; i += 2) count += (u64)by_count - (found->at[i + 1] - found->at[i]);
	if (count > most_units) return declined;
	if (of->global) set_lastIndex(of, 0);
	if (found->count == 0) {
		add_reference(of->text);
		return value_of(kind_string, of->text);
	}
	u32 wide = of->wide | by_wide, made = js_alloc_string(of->context, count, wide), to = made + string_data;
	if (made == 0) return exception;
	u32 at = 0, done = 0, bits = 0;
	for (u32 i = 0; i < found->count; i += 2) {
		u32 start = found->at[i];
		bits |= write(to, wide, at, of->units + (done << of->wide), of->wide, start - done);
		at += start - done;
		bits |= write(to, wide, at, by_units, by_wide, by_count);
		at += by_count;
		done = found->at[i + 1];
	}
	bits |= write(to, wide, at, of->units + (done << of->wide), of->wide, of->length - done);
	if (wide) {
		made = narrow(of->context, made, count, bits);
		return made ? value_of(kind_string, made) : exception;
	}
	((u8 *)to)[count] = 0;
	return value_of(kind_string, made);
}

// replaced_by_text is regexp_replace for what is not a function.
called value replaced_by_text(u32 context, value self, u32 count, value *arguments) {
	struct method of;
	if (kind_of(arguments[1]) == kind_string && open_method(&of, context, self, arguments[0])) {
		struct list found;
		open_list(&found, context);
		value made = replaced(&of, &found, address_of(arguments[1]));
		free_list(&found);
		release_matcher(&of.m);
		if (made != declined) return made;
	}
	return js_regexp_Symbol_replace(context, self, count, arguments);
}

// find_captures finds all matches, or the first one. It stores the captures of each as offsets, or ~0, and
// returns how many words it stored; or ~0 if it cannot do it. It is a function of its own because its frame
// is large, and the functions that are called with the matches may come here again.
called u32 find_captures(u32 context, value self, value text, u32 *captures, u32 **stored) {
	struct method of;
	if (!open_method(&of, context, self, text)) return ~0u;
	struct list found;
	open_list(&found, context);
	*captures = of.m.captures;
	u32 count = ~0u;
	if (get16((place)units(load32(of.object + regexp_code))) & flags_named) goto declined;
	for (u32 from = 0; from <= of.length;) {
		int result = match(&of.m, from);
		if (result < 0) goto declined;
		if (result == 0) break;
		for (u32 i = 0; i < of.m.captures; i += 2) {
			u32 missing = of.registers[i] == 0 || of.registers[i + 1] == 0;
			if (!append(&found, missing ? ~0u : position(&of, i)) || !append(&found, missing ? ~0u : position(&of, i + 1))) goto declined;
		}
		if (!of.global) break;
		u32 start = position(&of, 0), end = position(&of, 1);
		from = end > start ? end : behind(&of, end);
	}
	if (found.count > 0) {
		*stored = (u32 *)lre_realloc(context, 0, found.count * 4);
		if (*stored == 0) goto declined;
		__builtin_memcpy(*stored, found.at, found.count * 4);
	}
	count = found.count;
	if (of.global) set_lastIndex(&of, 0);
declined:
	free_list(&found);
	release_matcher(&of.m);
	return count;
}

// A text, and what its matches are replaced by.
struct replacements {
	u32 context, length, wide;
	place units;
	u32 count, captures, *found; // found has as many words as there are captures, for each match
	value *made;                 // for each match, a string
};

// call stores what a function returns for each match, as strings, and says whether it did.
static u32 call(struct replacements *r, value text, value function) {
	value arguments[most_registers / 2 + 2];
	struct method of; // for part; the compiler keeps only what that uses
	of.context = r->context;
	of.units = r->units;
	of.wide = r->wide;
	u32 strings = r->captures / 2, *found = r->found;
	for (u32 i = 0; i < r->count; i++, found += r->captures) {
		value result = exception;
		u32 n = 0;
		while (n < strings) {
			u32 start = found[2 * n];
			value one = start == ~0u ? value_of(kind_undefined, 0) : part(&of, start, found[2 * n + 1]);
			if (one == exception) break;
			arguments[n++] = one;
		}
		if (n == strings) {
			arguments[n] = value_of(kind_int, found[0]);
			arguments[n + 1] = text;
			result = JS_Call(r->context, function, value_of(kind_undefined, 0), n + 2, arguments);
		}
		while (n > 0) drop_value(r->context, arguments[--n]);
		if (kind_of(result) != kind_string && result != exception) {
			value other = result;
			result = JS_ToString(r->context, other);
			drop_value(r->context, other);
		}
		r->made[i] = result;
		if (kind_of(result) == kind_exception) {
			while (i > 0) drop_value(r->context, r->made[--i]);
			return 0;
		}
	}
	return 1;
}

// joined returns the text with the replacements.
static value joined(struct replacements *r) {
	u32 wide = r->wide, *found = r->found;
	u64 count = r->length;
	for (u32 i = 0; i < r->count; i++, found += r->captures) {
		u32 by = load32(address_of(r->made[i]));
		wide |= (by & string_wide) != 0;
		count += (u64)(by & ~string_wide) - (found[1] - found[0]);
	}
	if (count > most_units) {
		JS_ThrowRangeError(r->context, message_length, 0);
		return exception;
	}
	u32 made = js_alloc_string(r->context, count, wide), to = made + string_data;
	if (made == 0) return exception;
	u32 at = 0, done = 0, bits = 0;
	found = r->found;
	for (u32 i = 0; i < r->count; i++, found += r->captures) {
		u32 by = address_of(r->made[i]), by_count = load32(by) & ~string_wide, by_wide = (load32(by) & string_wide) != 0;
		bits |= write(to, wide, at, r->units + (done << r->wide), r->wide, found[0] - done);
		at += found[0] - done;
		bits |= write(to, wide, at, (place)units(by), by_wide, by_count);
		at += by_count;
		done = found[1];
	}
	bits |= write(to, wide, at, r->units + (done << r->wide), r->wide, r->length - done);
	if (wide)
		made = narrow(r->context, made, count, bits);
	else
		((u8 *)to)[count] = 0;
	return made ? value_of(kind_string, made) : exception;
}

// replaced_by replaces each match by what a function returns for it.
called value replaced_by(u32 context, value self, value text, value function) {
	struct replacements r;
	u32 words = find_captures(context, self, text, &r.captures, &r.found);
	if (words == ~0u) return declined;
	if (words == 0) {
		add_reference(address_of(text));
		return text;
	}
	u32 string = load32(address_of(text));
	r.context = context;
	r.length = string & ~string_wide;
	r.wide = (string & string_wide) != 0;
	r.units = (place)units(address_of(text));
	r.count = words / r.captures;
	r.made = (value *)js_malloc(context, r.count * sizeof(value));
	value result = exception;
	if (r.made && call(&r, text, function)) {
		result = joined(&r);
		for (u32 i = 0; i < r.count; i++) drop_value(context, r.made[i]);
	}
	if (r.made) js_free(context, (u32)r.made);
	lre_realloc(context, (u32)r.found, 0);
	return result;
}

// regexp_replace is RegExp.prototype[Symbol.replace]: at once if the replacement is a function, or a text
// without $.
value export(regexp_replace)(u32 context, value self, u32 count, value *arguments) {
	if (kind_of(arguments[1]) == kind_object && JS_IsFunction(context, arguments[1])) {
		value made = replaced_by(context, self, arguments[0], arguments[1]);
		return made != declined ? made : js_regexp_Symbol_replace(context, self, count, arguments);
	}
	return replaced_by_text(context, self, count, arguments);
}

// strings makes an array of parts of the text, which a list has the starts and ends of.
static value strings(struct method *of, struct list *parts) {
	u32 count = parts->count / 2;
	value *values = (value *)js_malloc(of->context, count * sizeof(value) + 1);
	if (values == 0) return exception;
	for (u32 i = 0; i < count; i++) {
		u32 start = parts->at[2 * i];
		values[i] = start == ~0u ? value_of(kind_undefined, 0) : part(of, start, parts->at[2 * i + 1]);
		if (values[i] == exception) {
			while (i > 0) JS_FreeValue(of->context, values[--i]);
			js_free(of->context, (u32)values);
			return exception;
		}
	}
	value made = JS_NewArrayFrom(of->context, count, values);
	js_free(of->context, (u32)values);
	return made;
}

// regexp_match is RegExp.prototype[Symbol.match]: at once if the expression is global.
value export(regexp_match)(u32 context, value self, u32 count, value *arguments) {
	struct method of;
	if (open_method(&of, context, self, arguments[0])) {
		struct list found;
		open_list(&found, context);
		value made = declined;
		if (of.global && find_all(&of, &found)) {
			set_lastIndex(&of, 0);
			made = found.count == 0 ? value_of(kind_null, 0) : strings(&of, &found);
		}
		free_list(&found);
		release_matcher(&of.m);
		if (made != declined) return made;
	}
	return js_regexp_Symbol_match(context, self, count, arguments);
}

// is_method says whether a property of RegExp.prototype is the language's method of this number.
u32 is_method(u32 context, u32 i, u32 atom, u32 number) {
	u32 prototype = address_of(((value *)load32(context + context_prototypes))[class_regexp]), shape = load32(prototype + object_shape);
	if (load32(shape + shape_count) <= i) return 0;
	struct property *name = properties(shape) + i;
	value method = ((value *)load32(prototype + object_values))[i];
	if (name->atom != atom) return 0;
	if (flags_of(name) == flags_later) return 1;
	return flags_of(name) == flags_method && kind_of(method) == kind_object && has_number(address_of(method), number);
}

// is_constructed says whether the class of an expression makes expressions of this class, and the constructor
// takes it for an expression.
u32 is_constructed(u32 context) {
	u32 prototype = address_of(((value *)load32(context + context_prototypes))[class_regexp]), shape = load32(prototype + object_shape);
	value constructor = *(value *)(context + context_regexp);
	if (load32(shape + shape_count) < 20 || !is_method(context, place_match, atom_match, number_match)) return 0;
	struct property *name = properties(shape) + 19;
	if (name->atom != atom_constructor || flags_of(name) != flags_method || ((value *)load32(prototype + object_values))[19] != constructor) return 0;
	u32 object = address_of(constructor);
	shape = load32(object + object_shape);
	return load32(shape + shape_count) > species_property && is_getter(properties(shape), (value *)load32(object + object_values), species_property, atom_species, number_species, 0);
}

// find_parts appends the starts and ends of the parts between matches, and of the captures of each match.
static u32 find_parts(struct method *of, struct list *parts) {
	u32 done = 0;
	for (u32 from = 0; from < of->length || of->length == 0;) {
		int result = match(&of->m, from);
		if (result < 0) return 0;
		if (result == 0) break;
		u32 start = position(of, 0), end = position(of, 1);
		if (of->length == 0) return 1; // an empty text that matches has no parts
		if (start >= of->length) break;
		if (end == done) {
			from = behind(of, start);
			continue;
		}
		if (!append(parts, done) || !append(parts, start)) return 0;
		for (u32 i = 2; i < of->m.captures; i += 2) {
			u32 missing = of->registers[i] == 0 || of->registers[i + 1] == 0;
			if (!append(parts, missing ? ~0u : position(of, i)) || !append(parts, missing ? 0 : position(of, i + 1))) return 0;
		}
		from = done = end;
	}
	return append(parts, done) && append(parts, of->length);
}

// regexp_split is RegExp.prototype[Symbol.split]: at once if there is no limit.
value export(regexp_split)(u32 context, value self, u32 count, value *arguments) {
	struct method of;
	if (kind_of(arguments[1]) == kind_undefined && is_constructed(context) && open_method(&of, context, self, arguments[0])) {
		struct list parts;
		open_list(&parts, context);
		value made = find_parts(&of, &parts) ? strings(&of, &parts) : declined;
		free_list(&parts);
		release_matcher(&of.m);
		if (made != declined) return made;
	}
	return js_regexp_Symbol_split(context, self, count, arguments);
}
