package commitlog

import "sort"

// chunkLen is how many writes a chunk of a WriteSet holds before it is split.
const chunkLen = 128

// WriteSet collects the writes of a proposal, one per key, in key order. The zero value is empty.
// It is for one goroutine.
type WriteSet struct {
	chunks [][]Write // of at most chunkLen writes, none empty, so that an insertion moves few bytes
	keys   int
	bytes  int // of keys and values
}

// Len returns the number of keys.
func (s *WriteSet) Len() int { return s.keys }

// Bytes returns the size of all keys and values.
func (s *WriteSet) Bytes() int { return s.bytes }

// find returns the position of key: the chunk, and the index in it, where key is or
// belongs.
func (s *WriteSet) find(key string) (chunk, i int, found bool) {
	chunk = sort.Search(len(s.chunks), func(c int) bool {
		return s.chunks[c][len(s.chunks[c])-1].Key >= key
	})
	if chunk == len(s.chunks) {
		return chunk, 0, false
	}
	ws := s.chunks[chunk]
	i = sort.Search(len(ws), func(i int) bool { return ws[i].Key >= key })
	return chunk, i, ws[i].Key == key
}

// Get returns the write of key, nil if there is none; valid until the next Put.
func (s *WriteSet) Get(key []byte) *Write {
	if s.keys == 0 {
		return nil
	}
	c, i, found := s.find(string(key))
	if !found {
		return nil
	}
	return &s.chunks[c][i]
}

// Put adds w or replaces the write of the same key. If the set would have more than maxKeys keys
// or maxBytes bytes, it changes nothing and returns false.
func (s *WriteSet) Put(w Write, maxKeys, maxBytes int) bool {
	c, i, found := s.find(w.Key)
	keys, bytes := s.keys+1, s.bytes+len(w.Key)+len(w.Value)
	if found {
		old := &s.chunks[c][i]
		keys, bytes = s.keys, s.bytes+len(w.Value)-len(old.Value)
	}
	if keys > maxKeys || bytes > maxBytes {
		return false
	}
	s.keys, s.bytes = keys, bytes
	if found {
		s.chunks[c][i] = w
		return true
	}
	s.insert(c, i, w)
	return true
}

func (s *WriteSet) insert(c, i int, w Write) {
	if len(s.chunks) == 0 {
		s.chunks = [][]Write{{w}}
		return
	}
	if c == len(s.chunks) { // after the last key
		c--
		i = len(s.chunks[c])
	}
	if len(s.chunks[c]) == chunkLen {
		c, i = s.split(c, i)
	}
	ws := append(s.chunks[c], Write{})
	copy(ws[i+1:], ws[i:])
	ws[i] = w
	s.chunks[c] = ws
}

// split halves the full chunk c and returns the new position of its index i. A chunk that
// grows at its end, as with ascending keys, is left full.
func (s *WriteSet) split(c, i int) (int, int) {
	at := chunkLen / 2
	if i == chunkLen {
		at = chunkLen
	}
	rest := append(make([]Write, 0, chunkLen), s.chunks[c][at:]...)
	s.chunks = append(s.chunks, nil)
	copy(s.chunks[c+2:], s.chunks[c+1:])
	clear(s.chunks[c][at:])
	s.chunks[c], s.chunks[c+1] = s.chunks[c][:at], rest
	if i >= at {
		return c + 1, i - at
	}
	return c, i
}

// First returns the write of the smallest key in [lo, hi), nil if there is none; a nil hi is no
// bound.
func (s *WriteSet) First(lo, hi []byte) *Write {
	if s.keys == 0 {
		return nil
	}
	c, i, _ := s.find(string(lo))
	if c == len(s.chunks) {
		return nil
	}
	w := &s.chunks[c][i]
	if hi != nil && w.Key >= string(hi) {
		return nil
	}
	return w
}

// Last returns the write of the largest key in [lo, hi), nil if there is none; a nil hi is no
// bound.
func (s *WriteSet) Last(lo, hi []byte) *Write {
	if s.keys == 0 {
		return nil
	}
	c, i := len(s.chunks), 0
	if hi != nil {
		c, i, _ = s.find(string(hi))
	}
	if i == 0 { // before the first of its chunk: the last of the one before
		if c == 0 {
			return nil
		}
		c--
		i = len(s.chunks[c])
	}
	w := &s.chunks[c][i-1]
	if w.Key < string(lo) {
		return nil
	}
	return w
}

// Sorted returns all writes in key order. The set must not be used any more.
func (s *WriteSet) Sorted() []Write {
	if len(s.chunks) == 1 {
		return s.chunks[0]
	}
	all := make([]Write, 0, s.keys)
	for _, ws := range s.chunks {
		all = append(all, ws...)
	}
	return all
}
