package config

// Development are the settings of commands that build an app. A server ignores them.
type Development struct {
	// BuildCommand is a line of the shell, such as "npm run build", that `runner build`, `runner dev` and `runner deploy` run
	// in the app directory before they build the handlers: sh runs it, on Windows cmd. Empty: none.
	BuildCommand string `toml:"build.command"`
}
