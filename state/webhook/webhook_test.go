package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/secret"
	"runner.example/state/store"
	"runner.example/state/store/storetest"
	"runner.example/state/webhook"
)

// delivery is a request as a sender sends it.
type delivery struct {
	headers map[string]string
	body    string
}

func (d delivery) header(name string) ([]byte, bool) {
	value, ok := d.headers[name]
	return []byte(value), ok
}

func (d delivery) with(name, value string) delivery {
	headers := map[string]string{}
	for k, v := range d.headers {
		headers[k] = v
	}
	if value == "" {
		delete(headers, name)
	} else {
		headers[name] = value
	}
	return delivery{headers, d.body}
}

// vector is a delivery with its secret and the time of its signature. They are from the
// senders' documents; that of stripe is from the tests of stripe-dotnet.
type vector struct {
	scheme, secret string
	at             time.Time
	id             string
	delivery
	signature string // the header that carries it
}

var vectors = []vector{
	{"standard", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", time.Unix(1614265330, 0), "msg_p5jXN8AQM9LWM0D4loKWxJek", delivery{map[string]string{
		"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
		"webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	}, `{"test": 2432232314}`}, "webhook-signature"},
	{"github", "It's a Secret to Everybody", time.Unix(1700000000, 0), "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", delivery{map[string]string{
		"x-github-delivery":   "72d3162e-cc78-11e3-81ab-4c9367dc0958",
		"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
	}, "Hello, World!"}, "x-hub-signature-256"},
	{"slack", "8f742231b10e8888abcd99yyyzzz85a5", time.Unix(1531420618, 0), "a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503", delivery{map[string]string{
		"x-slack-request-timestamp": "1531420618",
		"x-slack-signature":         "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
	}, "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"}, "x-slack-signature"},
	{"stripe", "webhook_secret", time.Unix(1533204620, 0), "2220f87ef101a04665f11cdf770523143f875572008577fa0f20882ddb9cc3c7", delivery{map[string]string{
		"stripe-signature": "t=1533204620,v1=2220f87ef101a04665f11cdf770523143f875572008577fa0f20882ddb9cc3c7,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39",
	}, stripeEvent}, "stripe-signature"},
	{"standard", "whsec_plJ3nmyCDGBKInavdOK15jsl", time.Unix(1731705121, 0), "msg_loFOjxBNrRLzqYUf", delivery{map[string]string{
		"svix-id": "msg_loFOjxBNrRLzqYUf", "svix-timestamp": "1731705121",
		"svix-signature": "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
	}, `{"event_type":"ping","data":{"success":true}}`}, "svix-signature"},
}

//go:embed testdata/stripe.json
var stripeEvent string

func verifier(t *testing.T, scheme, value string) *webhook.Verifier {
	t.Helper()
	v, err := webhook.New(scheme, secret.New(value), 0)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// encodedMAC is a SHA-256 in hexadecimal or base64.
var encodedMAC = regexp.MustCompile(`[0-9a-f]{64}|[0-9A-Za-z+/]{43}=`)

func TestPublishedVectorsVerify(t *testing.T) {
	for _, vec := range vectors {
		d, err := verifier(t, vec.scheme, vec.secret).Verify(vec.header, []byte(vec.body), vec.at, nil)
		if err != nil {
			t.Errorf("%s: %v", vec.scheme, err)
			continue
		}
		if d.ID != vec.id {
			t.Errorf("%s: the delivery's id is %q, want %q", vec.scheme, d.ID, vec.id)
		}
		if vec.scheme != "github" && !d.Time.Equal(vec.at) {
			t.Errorf("%s: the delivery's time is %s, want %s", vec.scheme, d.Time, vec.at)
		}
	}
}

func TestASignatureOfAnotherBodySecretOrTimeIsRefused(t *testing.T) {
	for _, vec := range vectors {
		v := verifier(t, vec.scheme, vec.secret)
		refused := func(what string, d delivery, now time.Time, want fault.Code) {
			t.Helper()
			if _, err := v.Verify(d.header, []byte(d.body), now, nil); fault.CodeOf(err) != want {
				t.Errorf("%s: %s: %v (%s), want %s", vec.scheme, what, err, fault.CodeOf(err), want)
			} else if strings.Contains(err.Error(), vec.secret) {
				t.Errorf("%s: %s: the error shows the secret: %v", vec.scheme, what, err)
			}
		}
		for i := range len(vec.body) { // every byte matters
			body := []byte(vec.body)
			body[i] ^= 1
			refused(fmt.Sprintf("byte %d of the body changed", i), delivery{vec.headers, string(body)}, vec.at, fault.InvalidSignature)
		}
		refused("a space after the body", delivery{vec.headers, vec.body + " "}, vec.at, fault.InvalidSignature)
		refused("no body", delivery{vec.headers, ""}, vec.at, fault.InvalidSignature)
		signature := vec.headers[vec.signature]
		for name := range vec.headers {
			if name != "x-github-delivery" {
				refused("no "+name, vec.with(name, ""), vec.at, fault.MissingSignature)
				refused("garbage in "+name, vec.with(name, "x"), vec.at, fault.InvalidSignature)
			}
		}
		encoded := encodedMAC.FindString(signature)
		encode, decode := hex.EncodeToString, hex.DecodeString
		if len(encoded) < 64 {
			encode, decode = base64.StdEncoding.EncodeToString, base64.StdEncoding.DecodeString
		}
		for i := range sha256.Size { // every byte of the signature, too
			changed, err := decode(encoded)
			if err != nil {
				t.Fatal(err)
			}
			changed[i] ^= 1
			refused(fmt.Sprintf("byte %d of the signature changed", i), vec.with(vec.signature, strings.Replace(signature, encoded, encode(changed), 1)), vec.at, fault.InvalidSignature)
		}
		refused("a shorter signature", vec.with(vec.signature, strings.Replace(signature, "1", "", 1)), vec.at, fault.InvalidSignature)
		refused("another version", vec.with(vec.signature, strings.NewReplacer("v1", "v2", "v0", "v3", "sha256", "sha1").Replace(signature)), vec.at, fault.InvalidSignature)

		other, err := webhook.New(vec.scheme, secret.New("whsec_"+base64.StdEncoding.EncodeToString([]byte("another"))), 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Verify(vec.header, []byte(vec.body), vec.at, nil); fault.CodeOf(err) != fault.InvalidSignature {
			t.Errorf("%s: another secret: %v", vec.scheme, err)
		}
		if vec.scheme == "github" {
			continue // the scheme has no times
		}
		for _, at := range []struct {
			age time.Duration
			ok  bool
		}{{300 * time.Second, true}, {301 * time.Second, false}, {-300 * time.Second, true}, {-301 * time.Second, false}, {300*time.Second + 999*time.Millisecond, true}, {-300*time.Second - time.Millisecond, false}, {1000000 * time.Hour, false}} {
			_, err := v.Verify(vec.header, []byte(vec.body), vec.at.Add(at.age), nil)
			if (err == nil) != at.ok {
				t.Errorf("%s: %s old: %v", vec.scheme, at.age, err)
			}
		}
	}
}

func TestADeliveryIsRememberedLongerThanItsSignatureIsValid(t *testing.T) {
	const tolerance = 2 * time.Minute
	for _, vec := range vectors {
		v, err := webhook.New(vec.scheme, secret.New(vec.secret), tolerance)
		if err != nil {
			t.Fatal(err)
		}
		for _, age := range []time.Duration{-tolerance, 0, tolerance} {
			d, err := v.Verify(vec.header, []byte(vec.body), vec.at.Add(age), nil)
			if err != nil {
				t.Fatal(err)
			}
			if last := vec.at.Add(tolerance + 7*24*time.Hour); d.Until.Before(last) && vec.scheme != "github" {
				t.Errorf("%s, %s old: recorded until %s, want %s", vec.scheme, age, d.Until, last)
			}
		}
	}
}

func TestUnsignedHeadersDoNotIdentifyADelivery(t *testing.T) {
	vec := vectors[1]
	v := verifier(t, vec.scheme, vec.secret)
	for _, id := range []string{"", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "another"} {
		d, err := v.Verify(vec.with("x-github-delivery", id).header, []byte(vec.body), vec.at, nil)
		if err != nil || d.ID != vec.id {
			t.Errorf("x-github-delivery %q: the delivery is %q, %v", id, d.ID, err)
		}
	}
}

func TestHeadersOfTheTwoNamesAreNotMixed(t *testing.T) {
	svix := vectors[len(vectors)-1]
	v := verifier(t, svix.scheme, svix.secret)
	for from, to := range map[string]string{"svix-id": "webhook-id", "svix-timestamp": "webhook-timestamp", "svix-signature": "webhook-signature"} {
		d := svix.with(to, svix.headers[from]).with(from, "")
		if _, err := v.Verify(d.header, []byte(d.body), svix.at, nil); fault.CodeOf(err) != fault.MissingSignature {
			t.Errorf("%s in place of %s: %v", to, from, err)
		}
	}
}

func TestTimesConsistOfDigits(t *testing.T) {
	for _, text := range []string{"-1", "+1614265330", " 1614265330", "1614265330 ", "1614265330.0", "1e9", "0x10", "", "99999999999999999999", "１６"} {
		d := vectors[0].with("webhook-timestamp", text)
		mac := hmac.New(sha256.New, must(base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")))
		fmt.Fprintf(mac, "%s.%s.%s", d.headers["webhook-id"], text, d.body)
		d = d.with("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		if _, err := verifier(t, "standard", vectors[0].secret).Verify(d.header, []byte(d.body), vectors[0].at, nil); err == nil {
			t.Errorf("time %q is accepted", text)
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestOneOfSeveralSignaturesIsEnough(t *testing.T) {
	for _, c := range []struct {
		vec  vector
		text string
	}{
		{vectors[0], "v1,AAAA v1a,xyz v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
		{vectors[3], "t=1533204620,v1=00ff,v1=zz," + strings.SplitN(vectors[3].headers["stripe-signature"], ",", 3)[1]},
	} {
		d := c.vec.with(c.vec.signature, c.text)
		if _, err := verifier(t, c.vec.scheme, c.vec.secret).Verify(d.header, []byte(d.body), c.vec.at, nil); err != nil {
			t.Errorf("%s: %v", c.vec.scheme, err)
		}
	}
	two := vectors[3].with("stripe-signature", "t=1,"+vectors[3].headers["stripe-signature"])
	if _, err := verifier(t, "stripe", vectors[3].secret).Verify(two.header, []byte(two.body), vectors[3].at, nil); err == nil {
		t.Error("a signature with two times is accepted")
	}
}

func TestInvalidSigningSecretsAreRefused(t *testing.T) {
	for _, c := range []struct{ scheme, value string }{
		{"standard", ""}, {"standard", "whsec_"}, {"standard", "not base64!"}, {"stripe", ""}, {"github", ""}, {"slack", ""},
		{"svix", "whsec_AAAA"}, {"", "x"},
	} {
		_, err := webhook.New(c.scheme, secret.New(c.value), 0)
		if fault.CodeOf(err) != fault.Invalid || c.value != "" && strings.Contains(err.Error(), c.value) {
			t.Errorf("%s, %q: %v", c.scheme, c.value, err)
		}
	}
}

func TestADeliveryIsHandledOncePerRouteAndExpires(t *testing.T) {
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	until := time.Now().Add(time.Hour)
	d := webhook.Delivery{ID: "msg_1", Until: until}
	handled := func(route string, d webhook.Delivery) (yes bool) {
		t.Helper()
		if err := st.View(t.Context(), func(tx *store.Tx) (err error) { yes, err = d.Handled(tx, route, time.Now()); return err }); err != nil {
			t.Fatal(err)
		}
		return yes
	}
	record := func(route string, d webhook.Delivery) {
		t.Helper()
		if _, err := st.Update(t.Context(), func(tx *store.Tx) error { return d.Record(tx, route) }); err != nil {
			t.Fatal(err)
		}
	}
	if handled("POST /hook", d) {
		t.Error("handled before it was recorded")
	}
	record("POST /hook", d)
	for _, c := range []struct {
		route, id string
		want      bool
	}{{"POST /hook", "msg_1", true}, {"POST /hook", "msg_2", false}, {"POST /hoo", "kmsg_1", false}, {"POST /other", "msg_1", false}} {
		if got := handled(c.route, webhook.Delivery{ID: c.id, Until: until}); got != c.want {
			t.Errorf("%s %s: handled %t", c.route, c.id, got)
		}
	}

	for i := range 2500 { // more than one transaction of a sweep deletes
		record("POST /hook", webhook.Delivery{ID: fmt.Sprint("old", i), Until: time.Now().Add(-time.Second)})
		if i == 5 {
			record("POST /hook", webhook.Delivery{ID: "old5", Until: until}) // again, with a later end
		}
	}
	if handled("POST /hook", webhook.Delivery{ID: "old7"}) {
		t.Error("an expired record counts as handled")
	}
	if err := webhook.Sweep(t.Context(), st, time.Now()); err != nil {
		t.Fatal(err)
	}
	left := map[string]int{}
	if err := st.View(context.Background(), func(tx *store.Tx) error {
		for item, err := range tx.Scan([]byte("webhook/"), nil, false) {
			if err != nil {
				return err
			}
			left[strings.Split(string(item.Key), "/")[1]]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if left["handled"] != 2 || left["until"] != 2 || !handled("POST /hook", d) || !handled("POST /hook", webhook.Delivery{ID: "old5"}) {
		t.Errorf("after a sweep: %v", left)
	}
}

func FuzzVerify(f *testing.F) {
	for _, vec := range vectors {
		f.Add(vec.scheme, vec.headers[vec.signature], vec.headers["webhook-timestamp"]+vec.headers["x-slack-request-timestamp"], vec.body)
	}
	f.Fuzz(func(t *testing.T, scheme, signature, at, body string) {
		v, err := webhook.New(scheme, secret.New("whsec_AAAAAAAA"), 0)
		if err != nil {
			return
		}
		// The fuzzer does not know the secret.
		d := delivery{map[string]string{"webhook-id": "m", "webhook-timestamp": at, "webhook-signature": signature, "stripe-signature": signature,
			"x-hub-signature-256": signature, "x-slack-request-timestamp": at, "x-slack-signature": signature}, body}
		if _, err := v.Verify(d.header, []byte(body), time.Unix(1700000000, 0), nil); err == nil {
			t.Errorf("%s: %q is a signature of %q", scheme, signature, body)
		}
	})
}

func TestOnlyTheOwnerOfAClusterSweepsDeliveries(t *testing.T) {
	nodes := storetest.NewLog().Nodes(t, "a", "b")
	old := webhook.Delivery{ID: "msg_1", Until: time.Now().Add(-time.Second)}
	if _, err := nodes[1].Update(t.Context(), func(tx *store.Tx) error { return old.Record(tx, "POST /hook") }); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ node, left int }{{1, 2}, {0, 0}} {
		storetest.CatchUp(t, nodes...)
		if err := webhook.Sweep(t.Context(), nodes[c.node], time.Now()); err != nil {
			t.Fatal(err)
		}
		left := 0
		if err := nodes[c.node].View(t.Context(), func(tx *store.Tx) error {
			for _, err := range tx.Scan([]byte("webhook/"), nil, false) {
				if err != nil {
					return err
				}
				left++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if left != c.left {
			t.Errorf("after the sweep of node %d %d keys are left, want %d", c.node, left, c.left)
		}
	}
}
