package admin

import "context"

// Reloaded is the result of a reload.
type Reloaded struct {
	// Changed names the files, secrets and settings that have changed.
	Changed []string `json:"changed"`
	// Routes and Modules are the numbers of routes and modules that are served now.
	Routes  int `json:"routes"`
	Modules int `json:"modules"`
	// Release is the id of the release that is served; empty for none.
	Release string `json:"release"`
	// NotServed is the id of the release of the app directory if another release, which was deployed,
	// is served; otherwise empty.
	NotServed string `json:"notServed,omitempty"`
}

// Reload makes the server read its app and its settings again. It returns when they are in
// force. The error is a fault with the code NotActivated if they are not valid; then nothing has changed.
func (c *Client) Reload(ctx context.Context) (Reloaded, error) {
	return ask(ctx, c, OpReload, none{})
}
