package typescript

import "embed"

// Sources are the files of the SDK below src.
//
//go:embed src/*.ts
var Sources embed.FS

// Declarations are the types of what handlers can import and of what there is
// without an import, for editors.
//
//go:embed index.d.ts globals.d.ts
var Declarations embed.FS
