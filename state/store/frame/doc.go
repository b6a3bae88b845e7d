// Package frame writes and reads the format of a backup. It knows nothing of what the
// frames hold.
//
//	"runner backup 2\n" | head "\n" | frames
//	frame = kind, 1 | length, 4 | CRC-32C of the payload, 4 | payload
//
// The head is one line of text, which describes the backup.
//
// kind 'k': a list of versions of keys, see package files. Over all lists keys ascend, and the
// versions of a key descend.
// kind 'b': the digest of a blob; kind 'd': the next bytes of that blob.
// kind 'e': the end; its payload is the SHA-256 of all bytes before the frame.
package frame
