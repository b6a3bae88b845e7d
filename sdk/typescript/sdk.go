package typescript

import "embed"

// Sources are the files of the SDK: @runner/sdk in src, the web platform in src/web, modules of Node.js in src/node,
// and @runner/test in test.
//
//go:embed src/*.ts src/node/*.ts src/web/*.ts src/web/*/*.ts test/*.ts
var Sources embed.FS

// Declarations are the types of what handlers can import and of what there is
// without an import, for editors.
//
//go:embed index.d.ts globals.d.ts test.d.ts
var Declarations embed.FS
