// Searching in texts, for TypeScript modules.

#include "engine.h"
#include "words.h"

// index_of finds a unit in a string, from a position on, or returns -1.
u32 export(index_of)(u32 string, u32 unit, u32 from) {
	u32 head = load32(string), length = head & ~string_wide;
	if (head & string_wide) {
		const u16 *at = (const u16 *)units(string);
		for (; (int)from < (int)length; from++)
			if (at[from] == unit) return from;
		return -1;
	}
	if (unit > 0xff) return -1;
	const u8 *at = (const u8 *)units(string);
	for (u64 all = every(unit); (int)(length - from) >= 8 && (int)from >= 0; from += 8) {
		u64 found = zeros(load64(at + from) ^ all);
		if (found) return from + (__builtin_ctzll(found) >> 3);
	}
	for (; (int)from < (int)length; from++)
		if (at[from] == unit) return from;
	return -1;
}
