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

// DefaultTolerance is how far a delivery's time may be from ours, either way, where
// nobody says otherwise. The schemes' own documents name it.
const DefaultTolerance = 5 * time.Minute

// forgetAfter is how long deliveries are remembered beyond the time that their
// signature is taken. Senders repeat one by themselves or on request within three days,
// and no request lasts that long.
const forgetAfter = 7 * 24 * time.Hour

// Verifier checks the signatures of one scheme, made with one secret. It may be used
// by any number of goroutines.
type Verifier struct {
	scheme    scheme
	key       []byte
	tolerance time.Duration
}

// Delivery is what a sender has signed.
type Delivery struct {
	// ID is the sender's name for it, where that is signed: when it is sent again, it
	// is the same. Where a scheme signs none it is the signature.
	ID string
	// Time is when it was sent, in whole seconds; zero where the scheme does not say.
	Time time.Time
	// Until is when it need not be known any more that it was handled, by the clock
	// that Verify was given.
	Until time.Time
}

// Header gives the value of a header by its name in lower case, and whether there is
// one. The bytes are borrowed for the length of a call.
type Header func(name string) (value []byte, ok bool)

// New returns a verifier. A tolerance of zero is DefaultTolerance. An unknown scheme
// and a secret that cannot be one of it are errors; they never hold the secret.
func New(name string, value secret.Text, tolerance time.Duration) (*Verifier, error) {
	s, ok := schemes[name]
	if !ok {
		return nil, fault.New(fault.Invalid, "%q is no signature scheme: use %s", name, strings.Join(slices.Sorted(maps.Keys(schemes)), ", "))
	}
	key, err := s.key(value.Reveal())
	if err != nil {
		return nil, fault.New(fault.Invalid, "the secret is none of the scheme %s: %s", name, err)
	}
	if tolerance == 0 {
		tolerance = DefaultTolerance
	}
	return &Verifier{scheme: s, key: key, tolerance: tolerance}, nil
}

// Verify checks the signature that the headers carry for the body. Without one the
// error is a fault of the code MissingSignature; one that is wrong, or whose time is
// further from now than the tolerance, is InvalidSignature. m counts the work; its error
// is one of Verify's.
func (v *Verifier) Verify(header Header, body []byte, now time.Time, m *cost.Meter) (Delivery, error) {
	signed, err := v.scheme.read(header)
	if err != nil {
		return Delivery{}, err
	}
	d := Delivery{ID: signed.id, Until: now.Add(forgetAfter)}
	if v.scheme.timed {
		seconds, err := strconv.ParseUint(signed.time, 10, 40) // digits alone: no sign, no blank
		if err != nil {
			return Delivery{}, fault.New(fault.InvalidSignature, "the time of the signature is no number of seconds since 1970")
		}
		d.Time = time.Unix(int64(seconds), 0).UTC()
		d.Until = d.Time.Add(v.tolerance + forgetAfter)
		if age := time.Duration(now.Unix()-d.Time.Unix()) * time.Second; age > v.tolerance || age < -v.tolerance {
			return Delivery{}, fault.New(fault.InvalidSignature, "the signature's time is more than %s from now: compare the clocks, or the delivery is an old one", v.tolerance)
		}
	}
	mac := hmac.New(sha256.New, v.key)
	mac.Write([]byte(signed.before))
	for part := range slices.Chunk(body, cost.Every/2) { // a byte takes some 2 ns
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
	return Delivery{}, errWrong
}

var errWrong = fault.New(fault.InvalidSignature, "no signature fits the body: compare the secret, and send the body as it was signed")

// scheme is one way to sign with HMAC-SHA-256.
type scheme struct {
	// key makes the key of what the sender shows as the secret.
	key func(secret string) ([]byte, error)
	// timed says that deliveries carry their time.
	timed bool
	// read takes the headers apart.
	read func(Header) (signed, error)
	// decode gives the bytes of a signature.
	decode func(string) ([]byte, error)
}

// signed is what the headers of a delivery say.
type signed struct {
	id, time string
	// before is what the sender signed before the body.
	before string
	// signatures are several while a secret is being replaced.
	signatures []string
}

var schemes = map[string]scheme{
	// Standard Webhooks, https://www.standardwebhooks.com
	"standard": {
		key: base64Secret, timed: true, decode: base64.StdEncoding.DecodeString,
		read: func(header Header) (signed, error) {
			values, err := all(header, "webhook-id", "webhook-timestamp", "webhook-signature")
			if err != nil {
				return signed{}, err
			}
			s := signed{id: values[0], time: values[1], before: values[0] + "." + values[1] + "."}
			for signature := range strings.SplitSeq(values[2], " ") {
				if version, text, _ := strings.Cut(signature, ","); version == "v1" {
					s.signatures = append(s.signatures, text)
				}
			}
			if s.id == "" || strings.Contains(s.id, ".") { // else the border of id and time could be moved
				return signed{}, fault.New(fault.InvalidSignature, "webhook-id is empty or holds a dot")
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
			var s signed // x-github-delivery is not signed, so it names nothing
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

// all gives the headers that a scheme needs, and names the first that is missing.
func all(header Header, names ...string) ([]string, error) {
	values := make([]string, len(names))
	for i, name := range names {
		value, ok := header(name)
		if !ok || len(value) == 0 {
			return nil, fault.New(fault.MissingSignature, "the request is not signed: it has no header %s", name)
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

// base64Secret reads a secret of Standard Webhooks: whsec_ and base64.
func base64Secret(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is not whsec_ and base64")
	case len(key) == 0:
		return nil, errors.New("it is empty")
	}
	return key, nil
}
