package filelink

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"runner.example/internal/caller"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/state/audit"
	"runner.example/state/entity"
	"runner.example/state/store"
)

const (
	// MinLifetime and MaxLifetime are the limits of the time until a link expires.
	MinLifetime = time.Second
	MaxLifetime = 7 * 24 * time.Hour
	// MaxToken is the longest token, in bytes.
	MaxToken = 2048

	version  = 1
	macBytes = 16
)

// Disposition says what a browser does with the file.
type Disposition byte

// Dispositions.
const (
	ByType Disposition = iota // what SendFile chooses
	Inline
	Attachment
)

// Text returns the type of a Content-Disposition; ByType has none.
func (d Disposition) Text() string { return [...]string{"", "inline", "attachment"}[d] }

// Link is what a token says.
type Link struct {
	// Owner is the field of the row that has the file.
	Owner entity.FileOwner
	// File is the id of the file.
	File string
	// Expires is exact to a second.
	Expires     time.Time
	Disposition Disposition
	// Name replaces that of the file; empty: it does not.
	Name string

	generation uint64
}

// ErrInvalid means that a token was not made by this app, or was changed, or has expired.
var ErrInvalid = errors.New("the link is not valid")

var generationKey = []byte("filelinks/generation")

// generation returns that of new links, which is 0 until links are revoked.
func generation(tx *store.Tx) (uint64, error) {
	value, err := tx.Get(generationKey)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case len(value) != 8:
		return 0, fmt.Errorf("the generation of signed links has %d bytes, not 8", len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// Sign returns the token of a link. The error is a fault with the code TooLarge if the token would be longer than MaxToken,
// or one of the store.
func Sign(keys *keystore.Keystore, tx *store.Tx, l Link) (string, error) {
	var err error
	if l.generation, err = generation(tx); err != nil {
		return "", err
	}
	b := l.appendTo(nil)
	mac := macOf(keys, l.generation, b)
	b = append(b, mac[:]...)
	if base64.RawURLEncoding.EncodedLen(len(b)) > MaxToken {
		return "", fault.New(fault.TooLarge, "the link would be longer than %d bytes: give the file a shorter name", MaxToken)
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// Verify returns the link of a token that this app has made and that has not expired. It reads no store: see IsCurrent.
// The error is ErrInvalid.
func Verify(keys *keystore.Keystore, token []byte, now time.Time) (Link, error) {
	var b [MaxToken]byte
	if len(token) > MaxToken {
		return Link{}, ErrInvalid
	}
	n, err := base64.RawURLEncoding.Strict().Decode(b[:], token)
	// The decoder skips line breaks, which leave fewer bytes: each link has one token.
	if err != nil || n < macBytes || n != base64.RawURLEncoding.DecodedLen(len(token)) {
		return Link{}, ErrInvalid
	}
	signed, mac := b[:n-macBytes], b[n-macBytes:n]
	l, ok := read(signed)
	if !ok {
		return Link{}, ErrInvalid
	}
	if want := macOf(keys, l.generation, signed); !hmac.Equal(mac, want[:]) || !now.Before(l.Expires) {
		return Link{}, ErrInvalid
	}
	return l, nil
}

// IsCurrent reports whether the link was not revoked.
func (l *Link) IsCurrent(tx *store.Tx) (bool, error) {
	now, err := generation(tx)
	return now == l.generation, err
}

// Revoke ends all links that were made until now, with an audit record, and returns the generation of new ones. Only an
// operator of all tenants may call it: the fault is Denied.
func Revoke(tx *store.Tx, who keystore.Authority) (uint64, error) {
	if who.Caller.Kind != caller.System || who.Caller.Tenant != "" {
		return 0, fault.New(fault.Denied, "only an operator of all tenants may revoke signed links")
	}
	before, err := generation(tx)
	if err != nil {
		return 0, err
	}
	if err := tx.Set(generationKey, binary.BigEndian.AppendUint64(nil, before+1)); err != nil {
		return 0, err
	}
	return before + 1, audit.Append(tx, who.Record("files.revokeLinks", fmt.Sprintf("generation %d", before)))
}

func macOf(keys *keystore.Keystore, generation uint64, signed []byte) (mac [macBytes]byte) {
	key := keys.Derive(fmt.Sprintf("file links, generation %d", generation))
	h := hmac.New(sha256.New, key[:])
	h.Write(signed)
	copy(mac[:], h.Sum(nil))
	return mac
}

// appendTo appends what is signed.
func (l *Link) appendTo(b []byte) []byte {
	b = append(b, version)
	for _, n := range [...]uint64{l.generation, uint64(l.Expires.Unix()), uint64(l.Owner.Table), uint64(l.Owner.Field)} {
		b = binary.AppendUvarint(b, n)
	}
	b = appendText(appendText(b, l.Owner.Tail), l.File)
	return appendText(append(b, byte(l.Disposition)), l.Name)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// reader reads what appendTo has appended.
type reader struct {
	rest   []byte
	broken bool
}

// read returns the link of what appendTo has appended; false: it is something else.
func read(b []byte) (l Link, ok bool) {
	r := reader{rest: b}
	if r.byte() != version {
		return Link{}, false
	}
	l.generation = r.number(math.MaxUint64)
	l.Expires = time.Unix(int64(r.number(math.MaxUint32)), 0)
	l.Owner.Table, l.Owner.Field = uint32(r.number(math.MaxUint32)), uint32(r.number(math.MaxUint32))
	l.Owner.Tail, l.File = r.text(), r.text()
	l.Disposition = Disposition(r.byte())
	l.Name = r.text()
	return l, !r.broken && len(r.rest) == 0 && l.Disposition <= Attachment
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.broken = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) number(most uint64) uint64 {
	n, length := binary.Uvarint(r.rest)
	if length <= 0 || n > most {
		r.broken = true
		return 0
	}
	r.rest = r.rest[length:]
	return n
}

func (r *reader) text() string {
	length := r.number(uint64(len(r.rest)))
	if r.broken || length > uint64(len(r.rest)) {
		r.broken = true
		return ""
	}
	text := string(r.rest[:length])
	r.rest = r.rest[length:]
	return text
}
