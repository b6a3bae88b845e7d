package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/node/release"
)

// ReleaseList has the stored releases, the newest first, and the pointer to the active one.
type ReleaseList struct {
	Active   release.Pointer   `json:"active"`
	Releases []release.Release `json:"releases"`
	// TrustedKeys are the keys of whom the node needs a signature; empty: it needs none.
	TrustedKeys release.TrustedKeys `json:"trustedKeys"`
}

// AddRelease is a release to add.
type AddRelease struct {
	release.Manifest
	// Signature is added to those that the release has; nil: none is.
	Signature *release.Signature `json:"signature,omitempty"`
}

// ReleaseID identifies a release.
type ReleaseID struct {
	ID string `json:"id"`
}

// ReleaseSources is a stored release with its schema files.
type ReleaseSources struct {
	release.Release
	Sources []diag.Source `json:"sources"`
}

// MissingFiles are the files whose contents the node lacks.
type MissingFiles struct {
	Files []release.File `json:"files"`
}

// ActivateRelease names the release to activate.
type ActivateRelease struct {
	ID string `json:"id"`
	// Expected is the id of the release that must still be active, empty for none; nil: any.
	Expected *string `json:"expected,omitempty"`
}

// Releases returns the stored releases and the pointer.
func (c *Client) Releases(ctx context.Context) (ReleaseList, error) {
	return ask(ctx, c, OpListReleases, none{})
}

// Release returns a stored release with its schema files. The error is a fault with the code
// Unavailable if one of them is damaged or missing.
func (c *Client) Release(ctx context.Context, id string) (ReleaseSources, error) {
	return ask(ctx, c, OpGetRelease, ReleaseID{ID: id})
}

// MissingFiles returns the files of a manifest whose contents the node lacks.
func (c *Client) MissingFiles(ctx context.Context, m release.Manifest) ([]release.File, error) {
	missing, err := ask(ctx, c, OpMissingFiles, m)
	return missing.Files, err
}

// AddRelease stores a release, whose contents the node has. It is not activated. The error is a fault
// with the code Invalid if the node does not accept its signatures.
func (c *Client) AddRelease(ctx context.Context, request AddRelease) (release.Release, error) {
	return ask(ctx, c, OpAddRelease, request)
}

// ActivateRelease activates a stored release. The error is a *console.Problems if the release
// does not fit the node; then the active one is kept.
func (c *Client) ActivateRelease(ctx context.Context, request ActivateRelease) error {
	answer, err := ask(ctx, c, OpActivateRelease, request)
	return errors.Join(err, answer.Err())
}

// PutFile sends the contents of a file to the node.
func (c *Client) PutFile(ctx context.Context, f release.File, contents io.Reader) error {
	return c.transport.Put(ctx, f, contents)
}

// Put sends an upload.
func (p *peer) Put(ctx context.Context, f release.File, contents io.Reader) error {
	request, err := p.request(ctx, http.MethodPut, BlobPath+f.Digest.String(), contents)
	if err != nil {
		return err
	}
	request.ContentLength = f.Size
	request.Header.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	answer, err := p.transport.RoundTrip(request)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fault.Wrap(err, fault.Unavailable, "the connection broke while %s was sent: run the command again, what has arrived is kept", f.Name)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, MaxMessage))
	if err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("send %s: %w", f.Name, errors.Join(err, refused(answer, body)))
	}
	return nil
}
