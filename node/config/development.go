package config

import (
	"fmt"
	"net/netip"
	"net/url"
)

// Development are the settings of commands that build an app. A server ignores them.
type Development struct {
	// BuildCommand is a line of the shell, such as "npm run build", that `runner build`, `runner dev` and `runner deploy` run
	// in the app directory before they build the handlers: sh runs it, on Windows cmd. Empty: none.
	BuildCommand string `toml:"build.command"`
	// Proxy is the address of another development server on this machine, such as "http://localhost:5173" for Vite. `runner dev`
	// passes it the requests that no route matches, and WebSockets. Empty: none.
	Proxy string `toml:"dev.proxy"`
}

// CheckSetting checks the address of the other server.
func (d *Development) CheckSetting(key, value string) error {
	if key != "dev.proxy" || value == "" {
		return nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" || u.Host == "" || value != "http://"+u.Host && value != "http://"+u.Host+"/" {
		return fmt.Errorf("%q is not the address of a server: write http://localhost:5173, without a path", value)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q is not on this machine: the host must be localhost, 127.0.0.1 or [::1]", value)
	}
	return nil
}
