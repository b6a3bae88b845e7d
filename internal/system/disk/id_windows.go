package disk

import "io/fs"

func id(fs.FileInfo) uint64 { return 0 }
