package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/tree"
	"runner.example/node/release"
	"runner.example/state/store"
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
	// Listings are the files of modules, by the names of their listings. A node does not send them: Client.Listing
	// reads one.
	Listings map[string][]tree.File `json:"-"`
}

// MissingFiles are the files whose contents the node lacks.
type MissingFiles struct {
	Files []release.File `json:"files"`
}

// Blob names contents by their digest.
type Blob struct {
	Digest store.Digest `json:"sha256"`
	Size   int64        `json:"size"` // bytes
}

// Blobs are contents: those that a client asks for, or those that the node lacks.
type Blobs struct {
	Blobs []Blob `json:"blobs"`
}

// MaxBlobs limits the contents of one question, so that it stays below MaxMessage.
const MaxBlobs = 5_000

// ListingName names a listing of a release: the file that lists the files of a module.
type ListingName struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Listing is the text of a listing, see package tree.
type Listing struct {
	Text []byte `json:"text"`
}

// ActivateRelease names the release to activate.
type ActivateRelease struct {
	ID string `json:"id"`
	// Expected is the id of the release that must still be active, empty for none; nil: any.
	Expected *string `json:"expected,omitempty"`
	Allowed
}

// Allowed are activations that are refused unless an operator allows them.
type Allowed struct {
	// ReplaceApp: the active release may be one of another app.
	ReplaceApp bool `json:"replaceApp,omitempty"`
	// AllowEmpty: the schema may declare nothing that can be served or stored.
	AllowEmpty bool `json:"allowEmpty,omitempty"`
}

// CheckRelease is a release to check, which the node need not have.
type CheckRelease struct {
	release.Manifest
	// Sources are the schema files of the manifest.
	Sources []diag.Source `json:"sources"`
	Allowed
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

// MissingBlobs returns those of the contents that the node lacks.
func (c *Client) MissingBlobs(ctx context.Context, blobs []release.File) (missing []release.File, err error) {
	for part := range slices.Chunk(blobs, MaxBlobs) {
		var asked Blobs
		for _, f := range part {
			asked.Blobs = append(asked.Blobs, Blob{f.Digest, f.Size})
		}
		lacks, err := ask(ctx, c, OpMissingBlobs, asked)
		if err != nil {
			return nil, err
		}
		absent := map[store.Digest]bool{}
		for _, b := range lacks.Blobs {
			absent[b.Digest] = true
		}
		for _, f := range part {
			if absent[f.Digest] {
				missing = append(missing, f)
			}
		}
	}
	return missing, nil
}

// Listing returns the files that a listing of a stored release names.
func (c *Client) Listing(ctx context.Context, id, name string) ([]tree.File, error) {
	listing, err := ask(ctx, c, OpGetListing, ListingName{ID: id, Name: name})
	if err != nil {
		return nil, err
	}
	files, err := tree.Parse(listing.Text)
	if err != nil {
		return nil, fault.New(fault.Internal, "the node sent %s of release %s, which cannot be read: %v", name, id, err)
	}
	return files, nil
}

// AddRelease stores a release, whose contents the node has. It is not activated. The error is a fault
// with the code Invalid if the node does not accept its signatures.
func (c *Client) AddRelease(ctx context.Context, request AddRelease) (release.Release, error) {
	return ask(ctx, c, OpAddRelease, request)
}

// CheckRelease returns what an activation of the release would do, and warn about, given the node's settings, secrets,
// rows and keys. The error is what ActivateRelease would return, as far as it does not depend on the modules: the node
// may lack them. If the release is older than the active one, the rows are not compared. It changes nothing.
func (c *Client) CheckRelease(ctx context.Context, request CheckRelease) (Comparison, error) {
	return ask(ctx, c, OpCheckRelease, request)
}

// ActivateRelease activates a stored release. The error is a fault with the code NotActivated if the node cannot
// serve the release, or Conflict if another release is active than expected, or one of another app. Then the active one
// is kept.
func (c *Client) ActivateRelease(ctx context.Context, request ActivateRelease) error {
	_, err := ask(ctx, c, OpActivateRelease, request)
	return err
}

// PutFile sends the contents of a file to the node.
func (c *Client) PutFile(ctx context.Context, f release.File, contents io.Reader) error {
	return c.transport.Put(ctx, f, contents)
}

// Put sends an upload.
func (p *peer) Put(ctx context.Context, f release.File, contents io.Reader) error {
	return p.upload(ctx, BlobPath+f.Digest.String(), f.Name, contents, f.Size)
}

// PutBatch sends the blobs of the batch to the node.
func (c *Client) PutBatch(ctx context.Context, batch Batch) error {
	return c.transport.PutBatch(ctx, batch.body)
}

// PutBatch sends an upload of many blobs.
func (p *peer) PutBatch(ctx context.Context, body []byte) error {
	return p.upload(ctx, BatchPath, "files", bytes.NewReader(body), int64(len(body)))
}

// upload sends contents to a path; what names them. They are sent once the server has asked for them: one that
// refuses them has answered before.
func (p *peer) upload(ctx context.Context, path, what string, contents io.Reader, size int64) error {
	limit := limitSilence(ctx, p.answerTimeout)
	defer limit.stop()
	request, err := p.request(limit, http.MethodPut, path, contents, size)
	if err != nil {
		return err
	}
	request.Header.Set("Expect", "100-continue")
	answer, err := p.transport.RoundTrip(request)
	if err != nil {
		if limit.ctx.Err() != nil {
			return context.Cause(limit.ctx)
		}
		return fault.Wrap(err, fault.Unavailable, "the connection broke while %s was sent: run the command again, what has arrived is kept", what)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(limit.received(answer.Body), MaxMessage))
	if err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("send %s: %w", what, errors.Join(err, refused(answer, body)))
	}
	return nil
}
