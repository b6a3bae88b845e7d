// Package filelink makes and verifies the tokens of signed links to files. Who has a token may read the file of one field
// of one row until the token expires.
//
// A token is the base64url form, without padding, of
//
//	u8 version (1)
//	uvarint generation        of the key
//	uvarint expiry            seconds since 1970
//	uvarint table             the field: the numbers of layout.AppendFileReference
//	uvarint field
//	uvarint length, tail      of the row
//	uvarint length, id        of the file
//	u8 disposition            0: that of the type, 1: inline, 2: attachment
//	uvarint length, name      empty: that of the file
//	16 bytes                  of the HMAC-SHA-256 of all bytes before
//
// The key is derived from the pepper, for each generation another one. The store has the generation: a transaction that
// raises it revokes all links. A token is not encrypted: it shows the ids of the row, of its tenant, and of the file.
//
// The package reads neither rows nor files. Its caller compares the link with the row.
package filelink
