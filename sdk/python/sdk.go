package python

import "embed"

// Files are the program and the package, as a module finds them in /app.
//
//go:embed __main__.py all:runner LICENSE
var Files embed.FS
