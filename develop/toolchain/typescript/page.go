package typescript

import (
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"runner.example/internal/diag"
)

// PageFile is a file of a bundle for browsers.
type PageFile struct {
	Path    string // of the file to write
	Content []byte
}

// BundlePage bundles the file entry in dir and its imports, a script or a style sheet for browsers. It returns the files to
// write: out, and for a script that imports style sheets also one with the same name and the extension css. It does
// not write them. found has the errors and warnings of the sources. If it has an error, files is empty.
func BundlePage(dir, entry, out string) (files []PageFile, found diag.List, err error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	if !filepath.IsAbs(out) {
		out = filepath.Join(absolute, out)
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: absolute, EntryPoints: []string{entry}, Outfile: out, Bundle: true,
		Platform: api.PlatformBrowser, Format: api.FormatESModule, Target: api.ES2022, Charset: api.CharsetUTF8,
		MinifySyntax: true, MinifyWhitespace: true, MinifyIdentifiers: true,
		Define:   map[string]string{"process.env.NODE_ENV": `"production"`},
		LogLevel: api.LogLevelSilent, LogLimit: -1, Plugins: []api.Plugin{textPlugin(absolute)},
	})
	plain := func(m api.Message) string {
		text := strings.ReplaceAll(m.Text, "\n", " ")
		return strings.ToLower(text[:1]) + text[1:]
	}
	for _, m := range result.Errors {
		found.Errorf("", spanOf(m), "%s", plain(m))
	}
	for _, m := range result.Warnings {
		found.Warnf("", spanOf(m), "%s", plain(m))
	}
	for _, f := range result.OutputFiles {
		files = append(files, PageFile{f.Path, f.Contents})
	}
	return files, found, nil
}
