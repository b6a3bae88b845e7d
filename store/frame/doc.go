// Package frame writes and reads the format of a backup. It knows nothing of what the
// frames hold.
//
//	"runner backup 1\n" | head "\n" | frames
//	frame = kind, 1 | length, 4 | CRC-32C of the payload, 4 | payload
//
// The head is one line of text, which describes the backup.
//
// kind 'k': a list of keys with their versions, as Badger writes it.
// kind 'b': the digest of a blob; kind 'd': the next bytes of that blob.
// kind 'e': the end; its payload is the SHA-256 of all bytes before the frame.
package frame
