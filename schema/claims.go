package schema

import (
	"encoding/json"
	"errors"
	"slices"
)

// CheckJSON returns an error if raw is not a JSON value that the host accepts: at most 64
// levels deep, no repeated members, valid UTF-8.
func CheckJSON(raw []byte) error {
	_, err := compactJSON(nil, raw)
	return err
}

// ReadClaims reads the JSON object of a JWT's claims as rules see them: a Value by name, for
// caller.Caller.Claimed. It omits claims that are null, and numbers that no type can have.
func ReadClaims(raw []byte) (map[string]any, error) {
	if err := CheckJSON(raw); err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return nil, errors.New("must be an object")
	}
	claims := make(map[string]any, len(members))
	for name, member := range members {
		v, err := ParseUntyped(member)
		if err != nil || v.IsNull() {
			continue
		}
		if v.kind == KindList {
			v = ListValue(slices.DeleteFunc(slices.Clone(v.List()), Value.IsNull))
		}
		claims[name] = v
	}
	return claims, nil
}
