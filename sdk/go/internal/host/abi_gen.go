// Code generated from hostabi/abi by go generate; DO NOT EDIT.

package host

// errnoName gives the name of a failed host call's number. A number that this
// SDK does not know is internal.
func errnoName(n int32) string {
	switch n {
	case -1:
		return "not_found"
	case -2:
		return "invalid"
	case -3:
		return "denied"
	case -4:
		return "conflict"
	case -5:
		return "too_large"
	case -6:
		return "limit"
	case -7:
		return "unavailable"
	case -8:
		return "deadline"
	}
	return "internal"
}
