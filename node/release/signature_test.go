package release_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/fault"
	"runner.example/node/release"
	"runner.example/state/audit"
	"runner.example/state/store"
)

// privateKey returns a key that is made from a number.
func privateKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

// publicKey returns the text of its public key.
func publicKey(n byte) string {
	return release.FormatKey(privateKey(n).Public().(ed25519.PublicKey))
}

func TestASignatureIsValidForOneReleaseAndOneKey(t *testing.T) {
	m := release.Describe("shop", files("one"))
	s := release.Sign(m, privateKey(1))
	if err := s.Check(m); err != nil || s.Key != publicKey(1) {
		t.Fatalf("%s, %v", s.Key, err)
	}
	turned := release.Manifest{App: m.App, Files: []release.File{m.Files[1], m.Files[0]}}
	if err := s.Check(turned); err != nil {
		t.Errorf("the order of the files counts: %v", err)
	}
	altered := func(i int) []byte {
		value := bytes.Clone(s.Value)
		value[i] ^= 1
		return value
	}
	for name, wrong := range map[string]struct {
		release.Signature
		of release.Manifest
	}{
		"another module": {s, release.Describe("shop", files("two"))},
		"another app":    {s, release.Describe("shop2", files("one"))},
		"first byte":     {release.Signature{Key: s.Key, Value: altered(0)}, m},
		"last byte":      {release.Signature{Key: s.Key, Value: altered(63)}, m},
		"cut off":        {release.Signature{Key: s.Key, Value: s.Value[:63]}, m},
		"empty":          {release.Signature{Key: s.Key}, m},
		"another key":    {release.Signature{Key: publicKey(2), Value: s.Value}, m},
		"without a key":  {release.Signature{Value: s.Value}, m},
		"the bare id":    {release.Signature{Key: s.Key, Value: ed25519.Sign(privateKey(1), []byte(m.ID()))}, m},
	} {
		if err := wrong.Check(wrong.of); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Other programs may verify a signature: what it signs does not change.
func TestASignatureSignsTheIDAndTheDigestOfTheManifest(t *testing.T) {
	m := release.Describe("shop", files("one"))
	manifest := sha256.New()
	fmt.Fprintf(manifest, "runner release\nshop\n")
	for _, f := range files("one") {
		fmt.Fprintf(manifest, "%x %d %s\n", sha256.Sum256(f.Data), len(f.Data), f.Name)
	}
	text := fmt.Sprintf("runner release signature\nrel_e7cn7q0rqk5hekzxbctng5629c\n%x\n", manifest.Sum(nil))
	if !ed25519.Verify(privateKey(1).Public().(ed25519.PublicKey), []byte(text), release.Sign(m, privateKey(1)).Value) {
		t.Errorf("the signature does not sign %q", text)
	}
}

func TestOnlyTheUsualFormOfAPublicKeyIsAccepted(t *testing.T) {
	good := publicKey(1)
	if key, err := release.ParseKey(good); err != nil || !key.Equal(privateKey(1).Public()) {
		t.Fatalf("%v, %v", key, err)
	}
	encoded := func(der []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(der)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	last := strings.IndexByte(alphabet, good[58]) // its last two bits are not used
	private := encoded(x509.MarshalPKCS8PrivateKey(privateKey(1)))
	for name, text := range map[string]string{
		"empty": "", "a word": "release.pub", "the key alone": good[16:], "cut off": good[:40], "twice": good + good,
		"over lines": good[:32] + "\n" + good[32:], "with a line end": good + "\n", "without padding": strings.TrimRight(good, "="),
		"other bits of the last character": good[:58] + alphabet[last+1:last+2] + "=",
		"PEM":                              "-----BEGIN PUBLIC KEY-----\n" + good + "\n-----END PUBLIC KEY-----\n",
		"another algorithm":                encoded(x509.MarshalPKIXPublicKey(other.Public())),
		"private":                          private,
	} {
		_, err := release.ParseKey(text)
		if err == nil {
			t.Errorf("%s is a key: %q", name, text)
		} else if text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%s: the error shows the text: %v", name, err)
		} else if strings.Contains(err.Error(), "is a private key: remove it") != (text == private) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if short := release.ShortKey(good); len(short) != 8 || !strings.Contains(good, short) || short == release.ShortKey(publicKey(2)) {
		t.Errorf("short form %q of %q", short, good)
	}
	for _, text := range []string{"", good[:16], good[:20]} {
		release.ShortKey(text) // it does not panic
	}
}

// Keys are compared as texts, so a key must have one text.
func FuzzParseKey(f *testing.F) {
	f.Add(publicKey(1))
	f.Add(publicKey(1) + "\n")
	f.Add("MCowBQYDK2VwAyEA")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := release.ParseKey(text)
		if err == nil && (len(key) != ed25519.PublicKeySize || release.FormatKey(key) != text) {
			t.Errorf("%q is the key %x, whose text is %q", text, key, release.FormatKey(key))
		}
	})
}

// stored adds the contents of a release to the store and returns its manifest.
func stored(t *testing.T, st *store.Store, module string) release.Manifest {
	t.Helper()
	for _, f := range files(module) {
		if _, err := st.PutBlob(t.Context(), bytes.NewReader(f.Data)); err != nil {
			t.Fatal(err)
		}
	}
	return release.Describe("shop", files(module))
}

// signers returns the keys of the signatures.
func signers(rel release.Release) (keys []string) {
	for _, s := range rel.Signatures {
		keys = append(keys, s.Key)
	}
	return keys
}

func isUntrusted(err error) bool {
	_, ok := errors.AsType[*release.UntrustedError](err)
	return ok && fault.CodeOf(err) == fault.Invalid
}

func TestOnlyReleasesThatATrustedKeyHasSignedAreAdded(t *testing.T) {
	st := open(t, store.Options{})
	r := release.New(st, release.Options{Keep: 10, TrustedKeys: release.TrustedKeys{publicKey(1), publicKey(2)}})
	m := stored(t, st, "one")
	signed := func(n byte) *release.Signature { return new(release.Sign(m, privateKey(n))) }
	altered := signed(1)
	altered.Value[5] ^= 1
	ofAnother := release.Sign(release.Describe("shop", files("two")), privateKey(1))

	for want, s := range map[string]*release.Signature{
		"is not signed, and the node has [release] trusted_keys": nil,
		"is signed by " + publicKey(3) + ", and not by a key in": signed(3),
		"by the key " + publicKey(1) + " is not valid":           altered,
		"is not valid: sign the release again":                   &ofAnother,
	} {
		if _, err := r.Add(t.Context(), m, s, someone); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	// A missing signature is reported before missing files.
	if _, err := r.Add(t.Context(), release.Describe("shop", files("absent")), nil, someone); !isUntrusted(err) {
		t.Errorf("without files and without a signature: %v", err)
	}
	if all, _, err := r.List(t.Context()); err != nil || len(all) != 0 {
		t.Fatalf("a refused release is listed: %+v, %v", all, err)
	}

	for _, step := range []struct {
		add  *release.Signature
		want []string
	}{
		{signed(1), []string{publicKey(1)}},
		{signed(1), []string{publicKey(1)}},
		{nil, []string{publicKey(1)}}, // the release has a signature
		{signed(2), []string{publicKey(1), publicKey(2)}},
		{signed(1), []string{publicKey(2), publicKey(1)}},
	} {
		rel, err := r.Add(t.Context(), m, step.add, someone)
		if err != nil || rel.ID != m.ID() || !slices.Equal(signers(rel), step.want) {
			t.Errorf("signed by %q, want %q, %v", signers(rel), step.want, err)
		}
	}
	// A key that is not trusted changes nothing, even if another signature is there.
	if _, err := r.Add(t.Context(), m, signed(3), someone); !isUntrusted(err) {
		t.Errorf("signed by a third key: %v", err)
	}
	// What a key signed that is not trusted any more is not kept.
	r.SetTrustedKeys(release.TrustedKeys{publicKey(2)})
	rel, err := r.Add(t.Context(), m, nil, someone)
	if err != nil || !slices.Equal(signers(rel), []string{publicKey(2)}) {
		t.Errorf("signed by %q, %v", signers(rel), err)
	}
	r.SetTrustedKeys(release.TrustedKeys{publicKey(1)})
	if _, err := r.Add(t.Context(), m, nil, someone); !isUntrusted(err) {
		t.Errorf("signed by a key that is not trusted any more: %v", err)
	}

	entries, err := audit.List(t.Context(), st, 1, 100)
	if err != nil || len(entries) != 6 || entries[3].Reason != "signed by "+publicKey(2) || entries[2].Reason != "" {
		t.Errorf("audit %+v, %v", entries, err)
	}
}

func TestWithoutTrustedKeysEveryValidSignatureIsKept(t *testing.T) {
	st := open(t, store.Options{})
	r := release.New(st, release.Options{Keep: 10})
	m := stored(t, st, "one")
	if _, err := r.Add(t.Context(), m, nil, someone); err != nil {
		t.Error(err)
	}
	wrong := release.Sign(release.Describe("shop", files("two")), privateKey(1))
	if _, err := r.Add(t.Context(), m, &wrong, someone); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("with a signature of another release: %v", err)
	}
	const most = 16
	for n := range byte(most + 1) {
		s := release.Sign(m, privateKey(n))
		rel, err := r.Add(t.Context(), m, &s, someone)
		if n < most && (err != nil || len(rel.Signatures) != int(n)+1) {
			t.Fatalf("key %d: %d signatures, %v", n, len(rel.Signatures), err)
		}
		if n == most && (fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "the limit is 16")) {
			t.Errorf("one more: %v", err)
		}
	}
	// The app directory has the same files: the signatures stay.
	if rel := add(t, st, r, "one"); len(rel.Signatures) != most {
		t.Errorf("staged with %d signatures", len(rel.Signatures))
	}
	// A full record does not keep a trusted key out.
	r.SetTrustedKeys(release.TrustedKeys{publicKey(99)})
	s := release.Sign(m, privateKey(99))
	if rel, err := r.Add(t.Context(), m, &s, someone); err != nil || !slices.Equal(signers(rel), []string{publicKey(99)}) {
		t.Errorf("signed by %q, %v", signers(rel), err)
	}
}

// A record that the caller holds has its signatures after Add, also if it refuses one or drops others.
func TestASignatureIsAddedToACopy(t *testing.T) {
	m := release.Describe("shop", files("one"))
	rel := release.Release{Manifest: m, Signatures: []release.Signature{release.Sign(m, privateKey(1)), release.Sign(m, privateKey(2)), release.Sign(m, privateKey(3))}}
	before := signers(rel)
	again := release.Sign(m, privateKey(1)) // replaces the first
	if got, err := (release.TrustedKeys{}).Add(rel, &again); err != nil || !slices.Equal(signers(got), []string{publicKey(2), publicKey(3), publicKey(1)}) {
		t.Errorf("signed by %q, %v", signers(got), err)
	}
	if got, err := (release.TrustedKeys{publicKey(3)}).Add(rel, nil); err != nil || !slices.Equal(signers(got), []string{publicKey(3)}) {
		t.Errorf("signed by %q, %v", signers(got), err)
	}
	if after := signers(rel); !slices.Equal(after, before) {
		t.Errorf("the record of the caller was signed by %q, and now by %q", before, after)
	}
}

// Each part of a stored record that a signature depends on is changed in the store.
func TestAnAlteredRecordIsNotTrusted(t *testing.T) {
	st := open(t, store.Options{})
	trusted := release.TrustedKeys{publicKey(1)}
	r := release.New(st, release.Options{Keep: 10, TrustedKeys: trusted})
	m := stored(t, st, "one")
	s := release.Sign(m, privateKey(1))
	good, err := r.Add(t.Context(), m, &s, someone)
	if err != nil {
		t.Fatal(err)
	}
	read := func(alter func(*release.Release)) (rel release.Release) {
		t.Helper()
		rel = good
		rel.Files, rel.Signatures = slices.Clone(good.Files), []release.Signature{{Key: s.Key, Value: bytes.Clone(s.Value)}}
		alter(&rel)
		text, err := json.Marshal(rel)
		if err != nil {
			t.Fatal(err)
		}
		_, err = st.Update(t.Context(), func(tx *store.Tx) error { return tx.Set([]byte("release/record/"+good.ID), text) })
		if err == nil {
			rel, _, err = r.Read(t.Context(), good.ID)
		}
		if err != nil && fault.CodeOf(err) != fault.Unavailable { // a changed digest names no file
			t.Fatal(err)
		}
		return rel
	}
	if err := trusted.Check(read(func(*release.Release) {})); err != nil {
		t.Errorf("as it was: %v", err)
	}
	for name, alter := range map[string]func(*release.Release){
		"signature": func(rel *release.Release) { rel.Signatures[0].Value[9] ^= 1 },
		"key":       func(rel *release.Release) { rel.Signatures[0].Key = publicKey(2) },
		"removed":   func(rel *release.Release) { rel.Signatures = nil },
		"app":       func(rel *release.Release) { rel.App = "shop2" },
		"digest":    func(rel *release.Release) { rel.Files[1].Digest[0] ^= 1 },
		"name":      func(rel *release.Release) { rel.Files[1].Name = "build/b.wasm" },
		"file":      func(rel *release.Release) { rel.Files = rel.Files[:1] },
	} {
		if err := trusted.Check(read(alter)); !isUntrusted(err) {
			t.Errorf("%s: %v", name, err)
		}
		if err := (release.TrustedKeys)(nil).Check(read(alter)); err != nil {
			t.Errorf("%s, without trusted keys: %v", name, err)
		}
	}
}
