// Package webcrypto computes what SubtleCrypto of the Web Cryptography API offers. It has digests, HMAC, ECDSA,
// Ed25519, RSA-PSS, RSASSA-PKCS1-v1_5, RSA-OAEP, AES-CBC, AES-CTR, AES-GCM, AES-KW, ECDH, X25519, PBKDF2 and HKDF,
// by Go's standard library, for the SDKs that implement its objects.
//
// It keeps no keys. A key is a JSON object that the guest stores and passes back:
//
//	{"type":"secret|public|private","algorithm":{…},"usages":[…],"data":{"base64":"…"}}
//
// whose data is raw (secret), SPKI (public) or PKCS #8 (private). So the guest could pass any
// other bytes, and each operation reads them anew. What belongs to the guest's own objects is
// for the SDK to check: whether a key may be exported, and what it may be used for.
//
// Errors are fault.Invalid. Their text begins with the name that the standard gives the error:
// NotSupportedError, SyntaxError, InvalidAccessError, DataError, OperationError, TypeError.
package webcrypto
