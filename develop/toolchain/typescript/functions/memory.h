// The engine's allocator.

// runtime: how many pieces of memory are in use, their bytes, and the limit of the bytes; for each size of slots
// the list of blocks with free slots
#define runtime_pieces 20
#define runtime_bytes 24
#define runtime_limit 28
#define runtime_free 288
#define slot_sizes 1085936 // 16 bits for each size: a table of the engine

// block: two lists, the number of its size, and 16 bits each for the used slots, all slots, and the first
// free slot. The slots follow.
#define block_used 18
#define block_slots 20
#define block_first 22
#define block_data 24
#define largest_slot 512

// slot: 16 bits for the next free slot, or its own number; the number of its size; a byte for the garbage
// collector; the reference count; then the memory that is used
#define slot_header 8
#define no_slot 0xffff // also of memory outside of blocks

#define object_weak 20
#define runtime_phase 620 // of the garbage collector
#define phase_cycles 2
#define string_link 16

u32 engine(js_malloc_rt)(u32 runtime, u32 size);
void engine(js_free_rt)(u32 runtime, u32 at);
void engine(JS_FreeValueRT)(u32 runtime, value v);
void engine(free_gc_object)(u32 runtime, u32 object);
void engine(free_property)(u32 runtime, value *property, u32 flags);
void engine(free_shape)(u32 runtime, u32 shape);

static inline u32 load16(u32 at) { return *(u16 *)at; }
static inline void store16(u32 at, u32 n) { *(u16 *)at = n; }
static inline void store32(u32 at, u32 n) { *(u32 *)at = n; }
static inline u32 references(u32 address) { return load32(address - 4); }

// take_slot returns memory from a block that keeps a free slot, or 0.
static inline u32 take_slot(u32 runtime, u32 size) {
	if (size - 1 >= largest_slot - slot_header) return 0;
	u32 bytes = load32(runtime + runtime_bytes), whole = (size + 7 & ~7u) + slot_header, number;
	if (bytes + size > load32(runtime + runtime_limit) - 1) return 0;
	if (whole <= 128)
		number = whole / 8 - 2;
	else if (whole <= 256)
		number = (whole + 15) / 16 + 6, whole = whole + 15 & ~15u;
	else
		number = (whole + 31) / 32 + 14, whole = whole + 31 & ~31u;
	u32 list = runtime + runtime_free + 8 * number, block = load32(list + 4);
	if (block == list) return 0;
	u32 used = load16(block + block_used) + 1;
	if (used == load16(block + block_slots)) return 0;
	u32 first = load16(block + block_first), slot = block + block_data + first * whole;
	store16(block + block_used, used);
	store16(block + block_first, load16(slot));
	store16(slot, first);
	store32(runtime + runtime_pieces, load32(runtime + runtime_pieces) + 1);
	store32(runtime + runtime_bytes, bytes + whole);
	return slot + slot_header;
}

// free_slot frees memory in a block that was not full, and does not become empty, and says whether it did.
static inline u32 free_slot(u32 runtime, u32 at) {
	if (at == 0) return 1;
	u32 slot = at - slot_header, number = load16(slot);
	if (number == no_slot) return 0;
	u32 whole = load16(slot_sizes + 2 * *(u8 *)(slot + 2)), block = slot - number * whole - block_data;
	u32 used = load16(block + block_used), bytes = load32(runtime + runtime_bytes);
	if (used == 1 || used == load16(block + block_slots) || bytes < whole) return 0;
	store16(slot, load16(block + block_first));
	store16(block + block_first, number);
	store16(block + block_used, used - 1);
	store32(runtime + runtime_pieces, load32(runtime + runtime_pieces) - 1);
	store32(runtime + runtime_bytes, bytes - whole);
	return 1;
}

// unlink removes an element of a list of the engine.
static inline void unlink(u32 link) {
	u32 before = load32(link), after = load32(link + 4);
	store32(before + 4, after);
	store32(after, before);
}

void free_last(u32 runtime, value v);

static inline void drop_value_of(u32 runtime, value v) {
	if (kind_of(v) < kind_first) return;
	u32 count = references(address_of(v));
	if ((int)count > 1)
		store32(address_of(v) - 4, count - 1);
	else
		free_last(runtime, v);
}
