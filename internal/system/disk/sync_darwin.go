package disk

import "os"

func syncData(f *os.File) error { return f.Sync() } // F_FULLFSYNC: fsync alone leaves data in the cache of the disk
