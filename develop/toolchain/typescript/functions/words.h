// Eight bytes at once.

// The bytes of a word that are 0, in their highest bits. Those above the lowest one that is
// found may be wrong.
#define every(byte) (0x0101010101010101ull * (byte))
#define zeros(word) ((word) - every(1) & ~(word) & every(0x80))

// load64 may read behind what it is used for: memory goes on after every block of the engine.
static inline u64 load64(const u8 *at) {
	u64 word;
	__builtin_memcpy(&word, at, 8);
	return word;
}
