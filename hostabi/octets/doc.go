// Package octets writes bytes in the JSON that guest and host exchange: as a string, for its
// UTF-8, or as {"base64":"…"} (RFC 4648, section 4).
package octets
