package webcrypto

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// jwk is a JSON Web Key (RFC 7517, RFC 7518, RFC 8037).
type jwk struct {
	Kty    string   `json:"kty,omitempty"`
	Use    *string  `json:"use,omitempty"`
	KeyOps []string `json:"key_ops,omitempty"`
	Ext    *bool    `json:"ext,omitempty"`
	Alg    *string  `json:"alg,omitempty"`
	Crv    *string  `json:"crv,omitempty"`
	X      *string  `json:"x,omitempty"`
	Y      *string  `json:"y,omitempty"`
	D      *string  `json:"d,omitempty"`
	N      *string  `json:"n,omitempty"`
	E      *string  `json:"e,omitempty"`
	P      *string  `json:"p,omitempty"`
	Q      *string  `json:"q,omitempty"`
	DP     *string  `json:"dp,omitempty"`
	DQ     *string  `json:"dq,omitempty"`
	QI     *string  `json:"qi,omitempty"`
	K      *string  `json:"k,omitempty"`
}

func aesAlg(name string, bits int) string {
	return "A" + strconv.Itoa(bits) + strings.TrimPrefix(name, "AES-")
}

// aesAlg, hmacAlg and rsaAlg return the name of an algorithm with a hash (RFC 7518). SHA-1 has
// one for HMAC and PKCS #1 in the standard of this API, and none for RSA-PSS.
func hmacAlg(hash string) string { return "HS" + strings.TrimPrefix(hash, "SHA-") }
func rsaAlg(name, hash string) string {
	switch {
	case name == algPSS:
		return "PS" + strings.TrimPrefix(hash, "SHA-")
	case name == algOAEP && hash == "SHA-1":
		return algOAEP
	case name == algOAEP:
		return algOAEP + strings.TrimPrefix(hash, "SHA")
	}
	return "RS" + strings.TrimPrefix(hash, "SHA-")
}

// check compares what a JWK says about its use with how it is imported.
func (j *jwk) check(kty string, args *importArgs) error {
	if j.Kty != kty {
		return fail(dataError, "kty must be %q", kty)
	}
	if use := families[args.Algorithm.Name].use; j.Use != nil && len(args.Usages) > 0 && *j.Use != use {
		return fail(dataError, "use must be %q", use)
	}
	if j.KeyOps != nil {
		seen := map[string]bool{}
		for _, op := range j.KeyOps {
			if seen[op] {
				return fail(dataError, "key_ops has an entry twice")
			}
			seen[op] = true
		}
		for _, usage := range args.Usages {
			if !seen[usage] {
				return fail(dataError, "key_ops does not permit %q", usage)
			}
		}
	}
	if j.Ext != nil && !*j.Ext && args.Extractable {
		return fail(dataError, "ext does not permit that the key is extractable")
	}
	return nil
}

// hasAlg reports an alg other than these. j may be nil.
func (j *jwk) hasAlg(algs ...string) error {
	if j == nil || j.Alg == nil || slices.Contains(algs, *j.Alg) {
		return nil
	}
	return fail(dataError, "alg must be %s, not %q", strings.Join(algs, " or "), shorten(*j.Alg))
}

// member reads a member in base64url without padding (RFC 7515, section 2).
func member(name string, text *string) ([]byte, error) {
	if text == nil {
		return nil, fail(dataError, "the JWK has no %s", name)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(*text)
	if err != nil || strings.ContainsAny(*text, "\r\n") {
		return nil, fail(dataError, "%s must be base64url without padding", name)
	}
	return b, nil
}

func encoded(b []byte) *string {
	text := base64.RawURLEncoding.EncodeToString(b)
	return &text
}

// secret returns the bytes of a secret key. Its alg depends on their length.
func (j *jwk) secret(args *importArgs) ([]byte, error) {
	if j.Kty != "oct" {
		return nil, fail(dataError, "kty must be %q", "oct")
	}
	data, err := member("k", j.K)
	if err != nil {
		return nil, err
	}
	return data, j.check("oct", args)
}

// pair returns a public or private key.
func (j *jwk) pair(args *importArgs) (any, error) {
	a, kty := args.Algorithm, "OKP"
	switch {
	case isEC(a.Name):
		kty = "EC"
	case isRSA(a.Name):
		kty = "RSA"
	}
	if err := j.check(kty, args); err != nil {
		return nil, err
	}
	switch {
	case isEC(a.Name):
		return j.ec(a)
	case a.Name == algEd25519:
		return j.ed25519()
	case a.Name == algX25519:
		return j.x25519()
	}
	if err := j.hasAlg(rsaAlg(a.Name, a.Hash)); err != nil {
		return nil, err
	}
	return j.rsa()
}

func (j *jwk) ec(a *algorithm) (any, error) {
	c, err := a.curve()
	if err != nil {
		return nil, err
	}
	if j.Crv == nil || *j.Crv != a.NamedCurve {
		return nil, fail(dataError, "crv must be %q", a.NamedCurve)
	}
	if a.Name == algECDSA { // the standard compares none of ECDH
		if err := j.hasAlg(c.alg); err != nil {
			return nil, err
		}
	}
	x, err := member("x", j.X)
	if err != nil {
		return nil, err
	}
	y, err := member("y", j.Y)
	if err != nil {
		return nil, err
	}
	if len(x) != c.bytes || len(y) != c.bytes {
		return nil, fail(dataError, "x and y must have %d bytes", c.bytes)
	}
	public, err := ecdsa.ParseUncompressedPublicKey(c.Curve, slices.Concat([]byte{4}, x, y))
	if err != nil {
		return nil, fail(dataError, "x and y are not a point of %s", a.NamedCurve)
	}
	if j.D == nil {
		return public, nil
	}
	d, err := member("d", j.D)
	if err != nil {
		return nil, err
	}
	private, err := ecdsa.ParseRawPrivateKey(c.Curve, d)
	if err != nil || !private.PublicKey.Equal(public) {
		return nil, fail(dataError, "d is not the private key of x and y")
	}
	return private, nil
}

// okp returns x and d of a key of a curve with 32 bytes (RFC 8037). d is nil if it is not there.
func (j *jwk) okp(crv string) (x, d []byte, err error) {
	if j.Crv == nil || *j.Crv != crv {
		return nil, nil, fail(dataError, "crv must be %q", crv)
	}
	if x, err = member("x", j.X); err != nil {
		return nil, nil, err
	}
	if j.D != nil {
		if d, err = member("d", j.D); err != nil {
			return nil, nil, err
		}
	}
	if len(x) != 32 || d != nil && len(d) != 32 {
		return nil, nil, fail(dataError, "x and d must have 32 bytes")
	}
	return x, d, nil
}

func (j *jwk) ed25519() (any, error) {
	if err := j.hasAlg("EdDSA", algEd25519); err != nil {
		return nil, err
	}
	x, d, err := j.okp(algEd25519)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return ed25519.PublicKey(x), nil
	}
	private := ed25519.NewKeyFromSeed(d)
	if !private.Public().(ed25519.PublicKey).Equal(ed25519.PublicKey(x)) {
		return nil, fail(dataError, "d is not the private key of x")
	}
	return private, nil
}

func (j *jwk) x25519() (any, error) {
	x, d, err := j.okp(algX25519)
	if err != nil {
		return nil, err
	}
	public, err := ecdh.X25519().NewPublicKey(x)
	if err != nil || d == nil {
		return public, err
	}
	private, err := ecdh.X25519().NewPrivateKey(d)
	if err != nil || !private.PublicKey().Equal(public) {
		return nil, fail(dataError, "d is not the private key of x")
	}
	return private, nil
}

func (j *jwk) rsa() (any, error) {
	n, err := number("n", j.N)
	if err != nil {
		return nil, err
	}
	e, err := number("e", j.E)
	if err != nil {
		return nil, err
	}
	if err := checkRSA(n.BitLen()); err != nil {
		return nil, err
	}
	if !e.IsInt64() || e.Int64() < 3 || e.Int64() >= 1<<31 || e.Bit(0) == 0 || n.Bit(0) == 0 {
		return nil, fail(dataError, "n and e are not a public key")
	}
	public := rsa.PublicKey{N: n, E: int(e.Int64())}
	if j.D == nil {
		return &public, nil
	}
	var of [6]*big.Int
	for i, m := range []struct {
		name string
		text *string
	}{{"d", j.D}, {"p", j.P}, {"q", j.Q}, {"dp", j.DP}, {"dq", j.DQ}, {"qi", j.QI}} {
		if of[i], err = number(m.name, m.text); err != nil {
			return nil, err
		}
		if of[i].BitLen() > maxRSA || of[i].Sign() == 0 {
			return nil, fail(dataError, "%s is not a number of a private key", m.name)
		}
	}
	private := &rsa.PrivateKey{PublicKey: public, D: of[0], Primes: []*big.Int{of[1], of[2]}}
	if private.Validate() != nil {
		return nil, fail(dataError, "the numbers are not a private key")
	}
	private.Precompute()
	if p := &private.Precomputed; p.Dp.Cmp(of[3]) != 0 || p.Dq.Cmp(of[4]) != 0 || p.Qinv.Cmp(of[5]) != 0 {
		return nil, fail(dataError, "dp, dq and qi are not those of the private key")
	}
	return private, nil
}

func number(name string, text *string) (*big.Int, error) {
	b, err := member(name, text)
	return new(big.Int).SetBytes(b), err
}

func secretJWK(k *key) *jwk {
	alg := hmacAlg(k.Algorithm.Hash)
	if isAES(k.Algorithm.Name) {
		alg = aesAlg(k.Algorithm.Name, 8*len(k.Data))
	}
	return &jwk{Kty: "oct", Alg: &alg, K: encoded(k.Data)}
}

// pairJWK returns a key of the algorithm, as split returns it.
func pairJWK(a *algorithm, pair any) *jwk {
	switch k := pair.(type) {
	case *ecdsa.PublicKey:
		return ecJWK(a, k)
	case *ecdsa.PrivateKey:
		j := ecJWK(a, &k.PublicKey)
		d, _ := k.Bytes() // of a curve that is known
		j.D = encoded(d)
		return j
	case ed25519.PublicKey:
		return okpJWK(a, k, nil)
	case ed25519.PrivateKey:
		return okpJWK(a, k.Public().(ed25519.PublicKey), k.Seed())
	case *ecdh.PublicKey:
		return okpJWK(a, k.Bytes(), nil)
	case *ecdh.PrivateKey:
		return okpJWK(a, k.PublicKey().Bytes(), k.Bytes())
	case *rsa.PublicKey:
		return rsaJWK(a, k)
	}
	k := pair.(*rsa.PrivateKey)
	j, p := rsaJWK(a, &k.PublicKey), &k.Precomputed
	j.D, j.P, j.Q = encoded(k.D.Bytes()), encoded(k.Primes[0].Bytes()), encoded(k.Primes[1].Bytes())
	j.DP, j.DQ, j.QI = encoded(p.Dp.Bytes()), encoded(p.Dq.Bytes()), encoded(p.Qinv.Bytes())
	return j
}

func ecJWK(a *algorithm, k *ecdsa.PublicKey) *jwk {
	point, _ := k.Bytes() // 4, x, y
	half := len(point) / 2
	return &jwk{Kty: "EC", Crv: &a.NamedCurve, X: encoded(point[1 : 1+half]), Y: encoded(point[1+half:])}
}

func okpJWK(a *algorithm, x, d []byte) *jwk {
	name := a.Name
	j := &jwk{Kty: "OKP", Crv: &name, X: encoded(x)}
	if d != nil {
		j.D = encoded(d)
	}
	if name == algEd25519 {
		j.Alg = &name
	}
	return j
}

func rsaJWK(a *algorithm, k *rsa.PublicKey) *jwk {
	alg := rsaAlg(a.Name, a.Hash)
	return &jwk{Kty: "RSA", Alg: &alg, N: encoded(k.N.Bytes()), E: encoded(big.NewInt(int64(k.E)).Bytes())}
}
