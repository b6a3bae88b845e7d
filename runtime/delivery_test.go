package runtime_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/secret"
	"runner.example/keystore/credtime"
	"runner.example/runtime"
)

// A delivery is remembered by the credential time, which may be ahead of the machine's clock: a clock that
// is set back permits no replay, and one that is behind neither.
func TestADeliveryIsRememberedByTheCredentialTime(t *testing.T) {
	const months = 60 * 24 * time.Hour
	for _, ahead := range []time.Duration{0, months, -months} {
		machine := credtime.Machine{
			Boot: "1", Uptime: func() time.Duration { return 0 }, Synchronized: func() bool { return true },
			Wall: func() time.Time { return time.Now().Add(ahead) },
		}
		s := newServerAt(t, machine)
		key := []byte("twenty-four bytes secret")
		bundle := s.bundle("", forClerks, addRoute+`
  POST /hook -> add (auth: none, as: clerk, rateLimit: none, verify: webhook(standard, HOOK))
}
secret HOOK
routes("/other", auth: none, rateLimit: none) { GET / -> count`)
		var err error
		bundle.Secrets, err = secret.Resolve([]string{"HOOK"}, func(string) (string, bool) { return "", false }, map[string]string{"HOOK": "whsec_" + base64.StdEncoding.EncodeToString(key)})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Activate(context.Background(), bundle, runtime.Activation{}); err != nil {
			t.Fatal(err)
		}
		const body = `{}`
		for i, want := range []int{200, 204, 204} {
			stamp := fmt.Sprint(time.Now().Unix())
			mac := hmac.New(sha256.New, key)
			mac.Write([]byte("msg_1." + stamp + "." + body))
			req, err := http.NewRequestWithContext(t.Context(), "POST", "http://shop.example/hook", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Webhook-Id", "msg_1")
			req.Header.Set("Webhook-Timestamp", stamp)
			req.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
			resp, err := s.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("the credential time is %v ahead, delivery %d: %d, want %d", ahead, i, resp.StatusCode, want)
			}
		}
		s.wantItems(1)
	}
}

// Anyone can send a body to an open route: checking it may take less time there than for a caller with a
// credential.
func TestCheckingABodyTakesLittleTimeOnAnOpenRoute(t *testing.T) {
	st, keys := openStore(t, t.TempDir())
	s := newEmptyServer(t, runtime.Options{Store: st, Keystore: keys, Limits: hostabi.Limits{CPU: time.Minute}, Timeout: time.Minute})
	s.activate("", forClerks, `POST /open -> add (auth: none, as: clerk, rateLimit: none, input: Texts)
  POST /items -> add (rateLimit: none, input: Texts)
}
type Text { text: string(1000) @pattern("^(a?){900}$") }
type Texts { all: Text[] }
routes("/other", auth: none, rateLimit: none) { GET / -> count`)
	body := func(texts int) string { // each takes milliseconds: the automaton of the pattern has 900 states
		return `{"all":[` + strings.TrimSuffix(strings.Repeat(`{"text":"`+strings.Repeat("a", 900)+`"},`, texts), ",") + `]}`
	}
	token := s.key("clerk")
	for _, row := range []struct {
		path, token string
		texts       int
		want        string
	}{
		{"/open", "", 0, `200 {"ok":true}`},
		{"/open", "", 900, "413 body_too_large"},
		{"/items", token, 1, `200 {"ok":true}`},
	} {
		if _, got := s.send("POST", row.path, row.token, body(row.texts)); got != row.want {
			t.Errorf("%d texts for %s: %q, want %q", row.texts, row.path, got, row.want)
		}
	}
}
