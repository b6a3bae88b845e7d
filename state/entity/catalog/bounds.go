package catalog

import (
	"strings"

	"runner.example/schema"
)

// bounds are the limits that a field's type sets on its values. A field without any has the
// zero value.
type bounds struct {
	MinLen  int    `json:"minLen,omitempty"`
	MaxLen  int    `json:"maxLen,omitempty"` // 0: unlimited
	Digits  int    `json:"digits,omitempty"` // of a decimal
	Min     string `json:"min,omitempty"`    // JSON
	Max     string `json:"max,omitempty"`    // JSON
	Pattern string `json:"pattern,omitempty"`
	// MaxBytes and Media are those of a file.
	MaxBytes int64  `json:"maxBytes,omitempty"`
	Media    string `json:"media,omitempty"` // with commas
}

func boundsOf(t *schema.Type) bounds {
	b := bounds{MinLen: t.MinLen, MaxLen: t.LongestText(), Digits: t.Digits, MaxBytes: t.MaxBytes, Media: strings.Join(t.MediaTypes, ",")}
	if !t.Min.IsNull() {
		b.Min = string(t.AppendJSON(nil, t.Min))
	}
	if !t.Max.IsNull() {
		b.Max = string(t.AppendJSON(nil, t.Max))
	}
	if t.Pattern != nil {
		b.Pattern = t.Pattern.String()
	}
	return b
}

// narrows reports whether a value within the prior bounds may be outside of those of t.
func (b bounds) narrows(prior bounds, t *schema.Type) bool {
	return b.MinLen > prior.MinLen ||
		b.MaxLen > 0 && (prior.MaxLen == 0 || b.MaxLen < prior.MaxLen) ||
		b.Digits > 0 && (prior.Digits == 0 || b.Digits < prior.Digits) ||
		b.Pattern != "" && b.Pattern != prior.Pattern ||
		b.MaxBytes > 0 && (prior.MaxBytes == 0 || b.MaxBytes < prior.MaxBytes) ||
		b.Media != "" && b.Media != prior.Media ||
		b.Min != "" && !inOrder(t, b.Min, prior.Min) ||
		b.Max != "" && !inOrder(t, prior.Max, b.Max)
}

// inOrder reports whether two values of the type, as JSON, are in ascending order or equal.
// An empty one is in no order.
func inOrder(t *schema.Type, low, high string) bool {
	a, err := t.ParseOperand([]byte(low))
	if err != nil {
		return false
	}
	b, err := t.ParseOperand([]byte(high))
	if err != nil {
		return false
	}
	order, ok := a.Compare(b)
	return ok && order <= 0
}
