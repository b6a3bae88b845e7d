// Package store keeps bytes in ordered, serializable transactions. No package above it
// knows Badger, or whether the node is part of a cluster.
//
// # The path of a commit
//
//	Update(fn) ─► Tx: reads of one snapshot, writes buffered
//	   │ proposal {snapshot, read keys, read ranges, writes}
//	   ▼
//	sequencer: puts queued proposals into one entry, and appends it to the log
//	   ▼
//	log: decides the order of entries, and delivers them to the sequencer
//	   ▼
//	apply(entry): gives it the next number, decides each proposal, one Badger transaction
//	   at this version, one sync ─► followers (OnApply) ─► readable ─► Update returns
//
// The number of an entry is Badger's commit version. Each entry of a log takes one, also one that
// commits nothing; the local log has none of these. Applying an entry reads no clock, no randomness
// and no map order: its effect depends only on the entries before it (see package commitlog). So
// stores that share a log have the same content at the same number, and the same chain of hashes of
// entries and verdicts. A single node uses the local log, whose entries become durable as Badger
// transactions. A log that several stores share may have an entry twice; the second one changes
// nothing.
//
// # Watches
//
// ViewReads returns what a View has read, and Watch calls a function once a later commit has written some of it. A
// commit only appends its keys to a queue, when it is readable. One goroutine of the store, the matcher, looks them up
// in an index of all watches (package watch), so that no commit waits for a watch. The window knows the commits between
// a View and its Watch. If keys are not known, because the window does not reach back so far, the queue was too long or
// a backup was restored, the watches count as changed: a watch may be called without a reason, and none is missed. Each
// node of a cluster applies all entries, so a watch sees the commits of all.
//
// # Stores in memory, and forks
//
// A store without a directory has its content in a tree in memory. Each commit makes a new tree, which shares
// what it does not change with the one before, so a snapshot is a tree. Store.Fork returns a store in memory that
// begins with the content of another one at a commit: it copies that one's tree in constant time, and of a store on
// disk it reads what its own tree lacks from Badger as of that commit. Forks, and forks of forks, share this
// snapshot until the last of them is closed. All else is the same code: the sequencer, the window, followers
// and the chain. A store in memory syncs nothing, and has no files to check, to back up or to restore into.
//
// # Invariants
//
//   - Transactions are serializable, including phantoms. A commit aborts if a key or
//     a range that it read was written after its snapshot. Update then runs fn again.
//   - A commit that Update acknowledged is synced to disk as a whole, after all
//     commits with smaller numbers, and is visible to every transaction begun
//     afterwards.
//   - The memory for detecting conflicts is bounded (see commitlog.Window). After Open it is
//     restored from the versions in Badger, and commits wait for that. A
//     transaction with an older snapshot gets a newer one if Badger has no
//     later version of what it read, and conflicts otherwise. Badger keeps all
//     versions inside the window, and those that an open transaction can see, and
//     all newer ones.
//   - Open refuses files that lack acknowledged commits, and names the file;
//     see datadir.Mark and package files.
//   - Damaged data is an error (ErrUnavailable), never an absent key or an older
//     value, and compactions do not drop it; see reading.go and scrub.go.
//   - A commit that does not fit on the disk is refused as a whole; reads still
//     work (see package space). One that a shared log already has waits for space.
//   - An Update or View that neither reads nor writes opens nothing.
//   - One node of a cluster is its owner, and does the background work that changes keys for all.
//     Each transaction of such work calls Tx.CheckOwner, and so excludes those of other nodes.
//   - A blob that a node lacks is fetched from another node when it is read; see Store.Blob.
//
// # What the store never does
//
// Values have no time to live: the package that stores a value records its end in
// it, and deletes it. Facts about one node are not stored in keys. Badger's value
// log is not used: a value that is too long for the tree is stored in pieces.
//
// # Bytes and goroutines
//
// Bytes given to Set, Delete and PutBlob are copied. Bytes from Get belong to
// the caller. Bytes in an Item or a Change are borrowed until the next step or the end of
// the call. A Store is safe for concurrent use; a Tx is for one goroutine.
//
// # Layout of the data directory
//
//	<dir>/lock                 flock and the holder's process id
//	<dir>/commit-mark          the newest commit; Open compares the log with it
//	<dir>/cluster-node         it belongs to a node of a cluster, see SetNode
//	<dir>/badger/              keys below: d<key> data, p… pieces, mlog the log's records
//	<dir>/blobs/<sha256 hex>   immutable files
package store
