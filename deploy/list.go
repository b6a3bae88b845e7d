package deploy

import (
	"fmt"
	"time"

	"runner.example/admin"
	"runner.example/internal/console"
	"runner.example/release"
)

// PrintList writes a table of releases for people.
func PrintList(c *console.Console, list admin.ReleaseList) error {
	var rows [][]string
	for _, r := range list.Releases {
		state, modules := "", 0
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
		rows = append(rows, []string{
			r.ID, state, r.App, fmt.Sprint(modules), r.Added.UTC().Format(time.DateTime + "Z"), r.By.Kind + " " + r.By.ID,
		})
	}
	return c.PrintTable([]string{"release", "state", "app", "modules", "added", "by"}, rows, "there are no releases")
}
