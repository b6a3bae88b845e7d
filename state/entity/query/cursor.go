package query

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/schema"
)

// A cursor contains the order values of the last row of a page:
//
//	base64url( 1 | nonce 12 | AES-256-GCM( [value of each order term, …] ) )
//
// The values are JSON. The additional data is the binding: a digest of caller and query, so
// that a cursor continues only its own query for its own caller. The nonce is a MAC of
// binding and values: equal pages have equal cursors, and no nonce is used for two texts.
const cursorVersion = 1

// maxCursor is the longest text of a cursor. A page whose last row has longer order values
// cannot be continued.
const maxCursor = 64 << 10

// CursorSealer encrypts and decrypts cursors. It is safe for concurrent use.
type CursorSealer struct {
	aead     cipher.AEAD
	nonceKey [sha256.Size]byte
}

func NewCursorSealer(key [32]byte) *CursorSealer {
	s := &CursorSealer{nonceKey: subkey(key, "cursor nonce")}
	sealing := subkey(key, "cursor sealing")
	block, err := aes.NewCipher(sealing[:])
	if err == nil {
		s.aead, err = cipher.NewGCM(block)
	}
	if err != nil {
		panic("BUG: " + err.Error()) // the key has the right length
	}
	return s
}

func subkey(key [32]byte, purpose string) (sub [sha256.Size]byte) {
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte(purpose))
	mac.Sum(sub[:0])
	return sub
}

func (s *CursorSealer) seal(plain []byte, binding [32]byte) string {
	mac := hmac.New(sha256.New, s.nonceKey[:])
	mac.Write(binding[:])
	mac.Write(plain)
	nonce := mac.Sum(nil)[:s.aead.NonceSize()]
	box := append(make([]byte, 0, 1+len(nonce)+len(plain)+s.aead.Overhead()), cursorVersion)
	box = s.aead.Seal(append(box, nonce...), nonce, plain, binding[:])
	return base64.RawURLEncoding.EncodeToString(box)
}

// open decrypts what was encrypted with the same binding; false for anything else.
func (s *CursorSealer) open(text string, binding [32]byte) ([]byte, bool) {
	box, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(box) < 1+s.aead.NonceSize() || box[0] != cursorVersion {
		return nil, false
	}
	nonce, sealed := box[1:1+s.aead.NonceSize()], box[1+s.aead.NonceSize():]
	plain, err := s.aead.Open(nil, nonce, sealed, binding[:])
	return plain, err == nil
}

// NextCursor returns the cursor after the row.
func (q *Query) NextCursor(row []schema.Value, cursors *CursorSealer, who *caller.Caller) (string, error) {
	plain := []byte{'['}
	for i := range q.Order {
		if i > 0 {
			plain = append(plain, ',')
		}
		v := row[q.Order[i].Pos]
		if v.Kind() == schema.KindJSON || v.Kind() == schema.KindList {
			v = schema.ListValue(nil) // untyped: such values have no order
		}
		plain = q.Order[i].typ.AppendJSON(plain, v)
	}
	if len(plain) > maxCursor/2 {
		return "", fault.New(fault.TooLarge,
			"orderBy: the values of the cursor are longer than %d bytes: order by a shorter field", maxCursor/2)
	}
	return cursors.seal(append(plain, ']'), q.bindingTo(who)), nil
}

func errCursor(raw []byte) error {
	return invalidValue("cursor", raw, "", "cursor: not valid for this query and this caller: use the nextCursor of its previous page")
}

// resume starts the query after the cursor.
func (q *Query) resume(raw []byte, cursors *CursorSealer, who *caller.Caller) error {
	text, ok := textOf(raw)
	if !ok || len(text) > maxCursor {
		return errCursor(raw)
	}
	plain, ok := cursors.open(text, q.bindingTo(who))
	if !ok {
		return errCursor(raw)
	}
	for i, elem := range elementsOf(plain) {
		v, err := q.Order[i].readPlace(elem)
		if err != nil {
			return errCursor(raw) // the field's type has changed since
		}
		q.After = append(q.After, v)
	}
	return nil
}

// readPlace reads the value of an order term, which may be null.
func (t *OrderTerm) readPlace(raw []byte) (schema.Value, error) {
	if raw[0] == 'n' {
		return schema.Value{}, nil
	}
	if t.typ == nil {
		return untypedValue(raw, nil), nil
	}
	return t.typ.ParseOperand(raw)
}

// bindingTo returns the digest of caller and query.
func (q *Query) bindingTo(who *caller.Caller) [32]byte {
	if q.binding != ([32]byte{}) {
		return q.binding
	}
	var text []byte
	put := func(s string) {
		text = append(binary.AppendUvarint(text, uint64(len(s))), s...)
	}
	put(who.Kind.String())
	put(who.UserID)
	put(who.Tenant)
	put(who.KeyID)
	put(who.Scope)
	put(who.As)
	for i := range q.Order {
		text = append(text, byte(q.Order[i].kind()))
	}
	q.binding = sha256.Sum256(q.appendJSON(text))
	return q.binding
}
