package keystore

import (
	"encoding/json"
	"time"
)

// Times are when a key of either kind was created and changed, and when it ends. Those below CreatedAt are zero if
// they are not set.
type Times struct {
	CreatedAt time.Time
	// ExpiresAt is zero for a key that does not expire.
	ExpiresAt time.Time
	RotatedAt time.Time
	// PreviousTokenExpiresAt is when the last of the old tokens ends; set only while one
	// is valid.
	PreviousTokenExpiresAt time.Time
	RevokedAt              time.Time
	// LastUsedAt is exact to about a second. After a kill of the server it may lack the
	// last minute.
	LastUsedAt time.Time
}

// timesJSON is the JSON form of Times, a part of that of a key.
type timesJSON struct {
	CreatedAt              jsonTime  `json:"createdAt"`
	ExpiresAt              *jsonTime `json:"expiresAt"`
	RotatedAt              *jsonTime `json:"rotatedAt"`
	PreviousTokenExpiresAt *jsonTime `json:"previousTokenExpiresAt"`
	RevokedAt              *jsonTime `json:"revokedAt"`
	LastUsedAt             *jsonTime `json:"lastUsedAt"`
}

func (t Times) toJSON() timesJSON {
	return timesJSON{
		jsonTime(t.CreatedAt), timeOrNull(t.ExpiresAt), timeOrNull(t.RotatedAt), timeOrNull(t.PreviousTokenExpiresAt),
		timeOrNull(t.RevokedAt), timeOrNull(t.LastUsedAt),
	}
}

func (j timesJSON) times() Times {
	return Times{
		CreatedAt: time.Time(j.CreatedAt), ExpiresAt: time.Time(orEmpty(j.ExpiresAt)), RotatedAt: time.Time(orEmpty(j.RotatedAt)),
		PreviousTokenExpiresAt: time.Time(orEmpty(j.PreviousTokenExpiresAt)),
		RevokedAt:              time.Time(orEmpty(j.RevokedAt)), LastUsedAt: time.Time(orEmpty(j.LastUsedAt)),
	}
}

const timeLayout = "2006-01-02T15:04:05.000Z07:00"

func timeOrNull(t time.Time) *jsonTime {
	if t.IsZero() {
		return nil
	}
	return (*jsonTime)(&t)
}

// jsonTime is a time as it is sent.
type jsonTime time.Time

// MarshalJSON encodes the time.
func (t jsonTime) MarshalJSON() ([]byte, error) {
	return []byte(`"` + time.Time(t).UTC().Format(timeLayout) + `"`), nil
}

// JSONForm is as that of Key.
func (jsonTime) JSONForm() []any { return []any{time.Time{}} }

// UnmarshalJSON decodes what MarshalJSON encoded.
func (t *jsonTime) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, (*time.Time)(t)) }
