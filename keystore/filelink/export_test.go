package filelink

// Signed returns what the token of a link signs.
func Signed(l Link) []byte { return l.appendTo(nil) }

// Read returns the link of what Signed returns.
func Read(b []byte) (Link, bool) { return read(b) }
