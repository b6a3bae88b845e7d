package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"runner.example/internal/cost"
	"runner.example/internal/fault"
	"runner.example/internal/secret"
)

// DefaultTolerance is the largest difference between a delivery's time and the host's
// clock, if the route does not set one. The documents of the schemes recommend it.
const DefaultTolerance = 5 * time.Minute

// keepAfter is how long a record is kept after the delivery's signature has expired.
// Senders repeat a delivery within three days, and no request lasts that long.
const keepAfter = 7 * 24 * time.Hour

// Verifier checks signatures of one scheme with one secret. It is safe for concurrent use.
type Verifier struct {
	scheme    scheme
	key       []byte
	tolerance time.Duration
}

// Delivery is a verified delivery.
type Delivery struct {
	// ID is the sender's id of the delivery, which is the same when it is sent again. If
	// the scheme does not sign an id, it is the signature.
	ID string
	// Time is when the delivery was sent, in whole seconds; zero if the scheme does not
	// sign a time.
	Time time.Time
	// Until is when the record of the delivery expires, by the clock that was given to
	// Verify.
	Until time.Time
}

// Header returns the value of a header, whose name is in lower case, and whether the
// request has it. The bytes are valid only during Verify.
type Header func(name string) (value []byte, ok bool)

// New returns a verifier. A tolerance of zero is DefaultTolerance. An unknown scheme and an
// invalid secret are errors, whose texts never contain the secret.
func New(name string, value secret.Text, tolerance time.Duration) (*Verifier, error) {
	s, ok := schemes[name]
	if !ok {
		return nil, fault.New(fault.Invalid, "unknown signature scheme %q: use %s",
			name, strings.Join(slices.Sorted(maps.Keys(schemes)), ", "))
	}
	key, err := s.key(value.Reveal())
	if err != nil {
		return nil, fault.New(fault.Invalid, "the secret is not valid for the scheme %s: %s", name, err)
	}
	if tolerance == 0 {
		tolerance = DefaultTolerance
	}
	return &Verifier{scheme: s, key: key, tolerance: tolerance}, nil
}

// Verify checks the signature in the headers for the body. Without a signature the error is
// a fault MissingSignature. It is InvalidSignature if the signature is wrong or its time
// differs from now by more than the tolerance. m meters the work; Verify returns its error
// too.
func (v *Verifier) Verify(header Header, body []byte, now time.Time, m *cost.Meter) (Delivery, error) {
	signed, err := v.scheme.read(header)
	if err != nil {
		return Delivery{}, err
	}
	d := Delivery{ID: signed.id, Until: now.Add(keepAfter)}
	if v.scheme.timed {
		seconds, err := strconv.ParseUint(signed.time, 10, 40) // only digits: without a sign or spaces
		if err != nil {
			return Delivery{}, fault.New(fault.InvalidSignature,
				"the time of the signature is not a number of seconds since 1970")
		}
		d.Time = time.Unix(int64(seconds), 0).UTC()
		d.Until = d.Time.Add(v.tolerance + keepAfter)
		if age := time.Duration(now.Unix()-d.Time.Unix()) * time.Second; age > v.tolerance || age < -v.tolerance {
			return Delivery{}, fault.New(fault.InvalidSignature,
				"the time of the signature differs from now by more than %s: check both clocks; an old delivery must be sent again",
				v.tolerance)
		}
	}
	mac := hmac.New(sha256.New, v.key)
	mac.Write([]byte(signed.before))
	for part := range slices.Chunk(body, cost.Every/2) { // about 2 ns for each byte
		if err := m.Spend(2 * len(part)); err != nil {
			return Delivery{}, err
		}
		mac.Write(part)
	}
	want := mac.Sum(nil)
	for _, signature := range signed.signatures {
		got, err := v.scheme.decode(signature)
		if err == nil && hmac.Equal(got, want) {
			if d.ID == "" {
				d.ID = hex.EncodeToString(want)
			}
			return d, nil
		}
	}
	return Delivery{}, errMismatch
}

var errMismatch = fault.New(fault.InvalidSignature,
	"the signature does not match the body: compare the secrets, and send the body exactly as it was signed")

// scheme is a signature format over HMAC-SHA-256.
type scheme struct {
	// key returns the HMAC key of a secret as the sender displays it.
	key func(secret string) ([]byte, error)
	// timed: deliveries have a signed time.
	timed bool
	// read parses the headers.
	read func(Header) (signed, error)
	// decode decodes one signature.
	decode func(string) ([]byte, error)
}

// signed is the content of a delivery's headers.
type signed struct {
	id, time string
	// before is the signed text before the body.
	before string
	// signatures has several elements while a secret is being replaced.
	signatures []string
}

var schemes = map[string]scheme{
	// Standard Webhooks, https://www.standardwebhooks.com, also with the older names of its
	// headers, which Svix sends.
	"standard": {
		key: base64Secret, timed: true, decode: base64.StdEncoding.DecodeString,
		read: func(header Header) (signed, error) {
			names := []string{"webhook-id", "webhook-timestamp", "webhook-signature"}
			if _, ok := header("webhook-signature"); !ok {
				if _, ok := header("svix-signature"); ok {
					names = []string{"svix-id", "svix-timestamp", "svix-signature"}
				}
			}
			values, err := all(header, names...)
			if err != nil {
				return signed{}, err
			}
			s := signed{id: values[0], time: values[1], before: values[0] + "." + values[1] + "."}
			for signature := range strings.SplitSeq(values[2], " ") {
				if version, text, _ := strings.Cut(signature, ","); version == "v1" {
					s.signatures = append(s.signatures, text)
				}
			}
			if s.id == "" || strings.Contains(s.id, ".") { // otherwise part of the id could be moved to the time
				return signed{}, fault.New(fault.InvalidSignature, "%s is empty or contains a dot", names[0])
			}
			return s, nil
		},
	},
	// https://docs.stripe.com/webhooks
	"stripe": {
		key: textSecret, timed: true, decode: hex.DecodeString,
		read: func(header Header) (signed, error) {
			values, err := all(header, "stripe-signature")
			if err != nil {
				return signed{}, err
			}
			var s signed
			for part := range strings.SplitSeq(values[0], ",") {
				switch name, text, _ := strings.Cut(part, "="); {
				case name == "t" && s.time != "":
					return signed{}, fault.New(fault.InvalidSignature, "stripe-signature has more than one time")
				case name == "t":
					s.time = text
				case name == "v1":
					s.signatures = append(s.signatures, text)
				}
			}
			s.before = s.time + "."
			return s, nil
		},
	},
	// https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries
	"github": {
		key: textSecret, decode: hex.DecodeString,
		read: func(header Header) (signed, error) {
			values, err := all(header, "x-hub-signature-256")
			if err != nil {
				return signed{}, err
			}
			var s signed // x-github-delivery is not signed, so it is not used as the id
			if text, ok := strings.CutPrefix(values[0], "sha256="); ok {
				s.signatures = []string{text}
			}
			return s, nil
		},
	},
	// https://docs.slack.dev/authentication/verifying-requests-from-slack
	"slack": {
		key: textSecret, timed: true, decode: hex.DecodeString,
		read: func(header Header) (signed, error) {
			values, err := all(header, "x-slack-request-timestamp", "x-slack-signature")
			if err != nil {
				return signed{}, err
			}
			s := signed{time: values[0], before: "v0:" + values[0] + ":"}
			if text, ok := strings.CutPrefix(values[1], "v0="); ok {
				s.signatures = []string{text}
			}
			return s, nil
		},
	},
}

// all returns the values of the headers that a scheme requires. The error names the first
// that is missing.
func all(header Header, names ...string) ([]string, error) {
	values := make([]string, len(names))
	for i, name := range names {
		value, ok := header(name)
		if !ok || len(value) == 0 {
			return nil, fault.New(fault.MissingSignature, "the request is not signed: the header %s is missing", name)
		}
		values[i] = string(value)
	}
	return values, nil
}

func textSecret(text string) ([]byte, error) {
	if text == "" {
		return nil, errors.New("it is empty")
	}
	return []byte(text), nil
}

// base64Secret decodes a secret of Standard Webhooks: base64, usually after whsec_.
func base64Secret(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is not base64 after whsec_")
	case len(key) == 0:
		return nil, errors.New("it is empty")
	}
	return key, nil
}
