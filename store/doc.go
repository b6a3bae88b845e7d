// Package store keeps bytes in ordered, serializable transactions. It is the
// only place that knows Badger, and the only one that knows whether this node
// stands alone.
//
// # How a commit goes
//
//	Update(fn) ─► Tx: reads of one snapshot, writes buffered
//	   │ proposal {snapshot, read keys, read ranges, writes}
//	   ▼
//	log: puts waiting proposals into one entry and gives it the next number
//	   ▼
//	apply(seq, entry): decides each proposal, one Badger transaction at
//	   version seq, one sync ─► followers (OnApply) ─► readable ─► Update returns
//
// A log decides the order of commits; its sequence number is Badger's commit
// version. Applying an entry reads no clock, no randomness and no map order:
// what an entry does depends on the entries before it and on nothing else. A
// node alone uses the local log, whose entries become durable with the Badger
// transaction they turn into.
//
// # What always holds
//
//   - Transactions are serializable, phantoms included. A commit aborts if
//     anything it read, a key or a place in a range where a key could have
//     been, was written after its snapshot. Update then runs fn again.
//   - What Update acknowledged is synced to disk, whole, in an order without
//     holes, and is seen by every transaction begun afterwards.
//   - The memory for detecting conflicts is bounded (see window). A
//     transaction with an older snapshot gets a newer one if Badger holds no
//     later version of what it read, and conflicts otherwise. Badger discards
//     no version inside the window, nor one that an open transaction can see
//     or that is newer.
//   - Open refuses files that lack acknowledged commits, and names the file;
//     see mark.go and package files.
//   - Damaged data is an error (ErrUnavailable), never an absent key or an older
//     value, and compactions do not drop it; see reading.go and scrub.go.
//   - A commit that does not fit on the disk is refused as a whole; reads still
//     work (see package space).
//   - An Update or View that touches nothing opens nothing.
//
// # What never happens here
//
// No value has a time to live: what ends says so in its value, and somebody
// deletes it. Facts about one node are not kept in keys. Nothing is ever read
// from or written to Badger's value log: a value too long for the tree is
// stored in pieces.
//
// # Bytes and goroutines
//
// Bytes given to Set, Delete and PutBlob are copied; bytes from Get belong to
// the caller; bytes in an Item or a Change are borrowed for the length of the
// step or call. A Store is for any number of goroutines, a Tx for one.
//
// # Layout of the folder
//
//	<dir>/lock                 flock and the holder's process id
//	<dir>/commit-mark          the newest commit, which Open checks the log against
//	<dir>/badger/              keys below: d<key> data, p… pieces, m… the log's state
//	<dir>/blobs/<sha256 hex>   immutable files
package store
