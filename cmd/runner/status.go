package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"runner.example/cmd/runner/cli"
	"runner.example/internal/console"
	"runner.example/internal/settings"
	"runner.example/node/admin"
)

const statusHelp = `Show the state of the running server of the app: version, active release, process, address, uptime, the
newest commit, whether it accepts writes, its memory limits, open files, the last good backup, and
where it has the values of the app's variables from. In a cluster also the version and the release of
each node. admin is the address for --to, and fingerprint that of its certificate.

Exit status 6: no server runs on the data directory.`

func statusCommand(c *program) *cobra.Command {
	var remote cli.Remote
	cmd := &cobra.Command{
		Use:   "status",
		Short: "show the state of the running server",
		Long:  statusHelp,
		Example: `  runner status
  runner status --data /var/lib/orders/data --json
  runner status --to https://edge-1.example.com:9443 --key-file read.key`,
		Args: cli.AtMost(0, "flags alone"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			node, err := c.DialRemote(cmd, remote)
			if err != nil {
				return err
			}
			s, err := node.Status(cmd.Context())
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(s)
			}
			writable := "yes"
			if !s.Writable {
				writable = "no: " + s.NotWritable
			}
			rows := [][2]string{
				{"version", s.Version + " (commit " + s.Commit + ")"},
				{"release", releaseText(s.Release)},
				{"pid", fmt.Sprint(s.PID)},
				{"app", cmp.Or(s.App, "-")},
				{"url", s.URL},
				{"metrics", cmp.Or(s.Metrics, "-")},
				{"admin", cmp.Or(s.Admin, "-")},
				{"fingerprint", cmp.Or(s.AdminFingerprint, "-")},
				{"uptime", (time.Duration(s.Uptime) * time.Second).String()},
				{"sequence", fmt.Sprint(s.Sequence)},
				{"level", fmt.Sprint(s.Level)},
				{"writable", writable},
				{"not ready", cmp.Or(s.NotReady, "-")},
				{
					"handlers' memory", fmt.Sprintf("%.1fmb of %s",
						float64(s.Memory.HandlersUsed)/(1<<20), settings.FormatSize(s.Memory.Handlers)),
				},
				{"bodies' memory", "at most " + settings.FormatSize(s.Memory.Bodies)},
				{"answers' memory", "at most " + settings.FormatSize(s.Memory.Answers)},
				{"open files", fmt.Sprintf("%d of %d", s.Descriptors.Open, s.Descriptors.Limit)},
			}
			last := "none"
			if s.Backup != nil {
				last = fmt.Sprintf("%s, %d bytes, sequence %d", s.Backup.Created.Format(time.RFC3339), s.Backup.Bytes, s.Backup.Sequence)
			}
			rows = append(rows, [2]string{"last backup", last})
			for _, n := range s.Nodes {
				text := fmt.Sprintf("version %s, release %s", cmp.Or(n.Version, "unknown"), cmp.Or(n.Release, "unknown"))
				rows = append(rows, [2]string{"node " + n.Name, text})
			}
			for _, v := range s.Vars {
				rows = append(rows, [2]string{"var " + v.Name, v.From})
			}
			return c.Print(console.Pairs(rows))
		},
	}
	remote.AddFlags(cmd)
	return cmd
}

// releaseText describes the release that a node serves.
func releaseText(r admin.ActiveRelease) string {
	if r.Since == nil {
		return "-"
	}
	return r.ID + ", active since " + r.Since.Format(time.RFC3339)
}
