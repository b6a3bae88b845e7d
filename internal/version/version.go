package version

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"runner.example/internal/level"
	"runner.example/internal/system"
)

// Version is the version of this program.
type Version struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Levels are the levels of the data that this program knows.
	Levels level.Range `json:"levels"`
}

// Read reads the build information in the binary.
func Read() Version {
	v := Version{
		Version: "devel", Commit: "unknown", Go: runtime.Version(), Platform: system.Platform,
		Levels: level.Known(),
	}
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
