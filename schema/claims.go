package schema

import (
	"encoding/json"
	"errors"
	"slices"
)

// CheckJSON refuses what is not one JSON value as the host reads it: at most 64 deep,
// no repeated member, valid UTF-8.
func CheckJSON(raw []byte) error {
	_, err := compactJSON(nil, raw)
	return err
}

// ReadClaims gives what rules see of the JSON object that a JWT claims, as
// caller.Caller.Claimed holds it: a Value by each name. What is null is not there, for
// the caller does not have it, and neither is a number that no field could hold.
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
		v, err := FreeValue(member)
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
