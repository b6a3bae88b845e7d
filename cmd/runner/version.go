package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what `runner version --json` prints.
type version struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionCommand(c *cli) *cobra.Command {
	var licences bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "print version",
		Args:  atMost(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			if !licences {
				return c.printVersion()
			}
			text, err := notices()
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(text)
			}
			return c.Print(text)
		},
	}
	cmd.Flags().BoolVar(&licences, "notices", false, "print the licences of the runner, of its parts, and of parts of the modules that it builds")
	return cmd
}

// versionFlag makes `runner --version` the same as `runner version`.
func (c *cli) versionFlag(root *cobra.Command) {
	var asked bool
	root.Flags().BoolVar(&asked, "version", false, "print version")
	otherwise := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if asked && len(args) == 0 {
			return c.printVersion()
		}
		return otherwise(cmd, args)
	}
}

func (c *cli) printVersion() error {
	v := buildVersion()
	if c.JSON {
		return c.PrintJSON(v)
	}
	return c.Print(fmt.Sprintf("runner %s (commit %s, %s, %s)\n", v.Version, v.Commit, v.Go, v.Platform))
}

// buildVersion reads the build information in the binary.
func buildVersion() version {
	v := version{Version: "devel", Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "(devel)" {
		v.Version = cmp.Or(info.Main.Version, v.Version)
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			v.Commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	v.Commit += dirty
	return v
}
