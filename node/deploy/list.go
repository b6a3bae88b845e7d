package deploy

import (
	"fmt"
	"strings"
	"time"

	"runner.example/internal/console"
	"runner.example/node/admin"
	"runner.example/node/release"
)

// PrintList writes a table of releases for people. The keys of signatures are shortened.
func PrintList(c *console.Console, list admin.ReleaseList) error {
	var rows [][]string
	for _, r := range list.Releases {
		state, modules, files := "", 0, 0
		switch r.ID {
		case list.Active.ID:
			state = "active"
		case list.Active.Previous:
			state = "previous"
		}
		for _, f := range r.Files {
			if release.IsModule(f.Name) {
				modules++
			}
		}
		for _, info := range r.Trees {
			files += info.Files
		}
		rows = append(rows, []string{
			r.ID, state, r.App, fmt.Sprint(modules), fmt.Sprint(files), r.Added.UTC().Format(time.DateTime + "Z"), r.By.Kind + " " + r.By.ID, signers(r, list.TrustedKeys),
		})
	}
	return c.PrintTable([]string{"release", "state", "app", "modules", "files", "added", "by", "signed by"}, rows, "there are no releases")
}

// signers names the keys that have signed a release, and says if the node does not accept them.
func signers(r release.Release, trusted release.TrustedKeys) string {
	var names []string
	for _, s := range r.Signatures {
		names = append(names, release.ShortKey(s.Key))
	}
	text := "-"
	if len(names) > 0 {
		text = strings.Join(names, " ")
	}
	if trusted.Check(r) != nil {
		text += " (not trusted)"
	}
	return text
}
