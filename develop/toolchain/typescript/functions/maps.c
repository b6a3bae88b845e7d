// Looking up texts in Map and Set of TypeScript modules.

#include "engine.h"

u32 engine(map_find_record)(u32 context, u32 map, value key);
u32 hash_bytes(const u8 *at, u32 count, u32 hash);
int compare_bytes(const u8 *a, const u8 *b, u32 count);

#define context_seed 288 // of hashes of keys
#define map_lists 16     // the lists of records, whose number is a power of 2
#define map_count 20
#define record_link 20
#define record_key 32
#define key_factor 1640531527u

// find_record returns the record of a key, or 0.
u32 export(find_record)(u32 context, u32 map, value key) {
	u32 string = address_of(key);
	if (kind_of(key) != kind_string || load32(string) & string_wide) return map_find_record(context, map, key);
	u32 count = load32(string), hash = hash_bytes((u8 *)units(string), count, 0);
	hash ^= kind_string * key_factor ^ load32(context + context_seed);
	u32 list = load32(map + map_lists) + 8 * (hash & load32(map + map_count) - 1);
	for (u32 link = load32(list + 4); link != list; link = load32(link + 4)) {
		value other = *(value *)(link - record_link + record_key);
		if (kind_of(other) == kind_rope) return map_find_record(context, map, key);
		if (kind_of(other) != kind_string) continue;
		if (other == key) return link - record_link;
		u32 text = address_of(other);
		if (load32(text) == count && compare_bytes((u8 *)units(text), (u8 *)units(string), count) == 0)
			return link - record_link;
	}
	return 0;
}
