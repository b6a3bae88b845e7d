package harness

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"time"
)

// Signature is the header value with which GitHub signs a body.
func Signature(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

var (
	standardKey    = []byte("twenty-four bytes secret")
	StandardSecret = "whsec_" + base64.StdEncoding.EncodeToString(standardKey)
)

const OtherSecret = "the other secret"

func MAC(key []byte, parts ...string) []byte {
	mac := hmac.New(sha256.New, key)
	for _, p := range parts {
		mac.Write([]byte(p))
	}
	return mac.Sum(nil)
}

// SignedStandard returns the headers of a Standard Webhooks delivery.
func SignedStandard(id string, at time.Time, body string) []string {
	stamp := fmt.Sprint(at.Unix())
	return []string{
		"Webhook-Id: " + id, "Webhook-Timestamp: " + stamp,
		"Webhook-Signature: v1," + base64.StdEncoding.EncodeToString(MAC(standardKey, id, ".", stamp, ".", body)),
	}
}
