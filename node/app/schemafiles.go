package app

import (
	"os"

	"runner.example/internal/console"
	"runner.example/schema/syntax"
)

// SchemaFiles returns the files named by args; a directory stands for its schema files.
func SchemaFiles(args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			return nil, console.Invalid("%w", err)
		case !info.IsDir():
			files = append(files, arg)
		default:
			found, err := syntax.Files(arg)
			if err != nil {
				return nil, console.Invalid("%w", err)
			}
			files = append(files, found...)
		}
	}
	return files, nil
}
