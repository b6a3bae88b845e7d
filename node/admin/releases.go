package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/release"
	"runner.example/state/audit"
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

// uploadOperation is the name of an upload.
const uploadOperation = "blobs.put"

// blobPath begins the path of an upload, which ends with the digest: PUT /blobs/<sha256>.
const blobPath = "/blobs/"

// authorOf returns who does an operation, for the audit.
func authorOf(who keystore.Authority) release.Author {
	return release.Author{Actor: audit.ActorOf(who.Caller), RequestID: who.RequestID, Address: who.Address}
}

func (l *Local) listReleases(ctx context.Context, _ keystore.Authority, _ struct{}) (ReleaseList, error) {
	all, active, err := l.Releases.List(ctx)
	return ReleaseList{active, append([]release.Release{}, all...), append(release.TrustedKeys{}, l.Releases.TrustedKeys()...)}, err
}

// maxSources limits the schema files of an answer, in bytes. A schema that compiles is smaller.
const maxSources = 16 << 20

func (l *Local) getRelease(ctx context.Context, _ keystore.Authority, args ReleaseID) (found ReleaseSources, err error) {
	if err := release.CheckID(args.ID); err != nil {
		return found, err
	}
	err = l.Store.View(ctx, func(tx *store.Tx) (err error) {
		found.Release, err = release.Get(tx, args.ID)
		return err
	})
	if err != nil {
		return found, err
	}
	schema := release.Manifest{Files: slices.DeleteFunc(slices.Clone(found.Files), func(f release.File) bool { return !release.IsSchema(f.Name) })}
	bytes := int64(0)
	for _, f := range schema.Files {
		bytes += f.Size
	}
	if bytes > maxSources {
		return found, fault.New(fault.TooLarge, "the schema files of the release have %d bytes, and the limit of an answer is %d", bytes, maxSources)
	}
	files, err := l.Releases.Contents(ctx, schema)
	for _, f := range files {
		found.Sources = append(found.Sources, diag.Source{Name: f.Name, Text: f.Data})
	}
	return found, allFaults(err)
}

func (l *Local) missingFiles(ctx context.Context, _ keystore.Authority, m release.Manifest) (MissingFiles, error) {
	if err := m.Check(); err != nil {
		return MissingFiles{}, allFaults(err)
	}
	missing, err := l.Releases.Missing(ctx, m)
	return MissingFiles{append([]release.File{}, missing...)}, err
}

func (l *Local) addRelease(ctx context.Context, who keystore.Authority, args AddRelease) (release.Release, error) {
	rel, err := l.Releases.Add(ctx, args.Manifest, args.Signature, authorOf(who))
	return rel, allFaults(err)
}

// allFaults joins the reasons of an error to one fault: an answer has one.
func allFaults(err error) error {
	parts := console.Parts(err)
	if len(parts) < 2 {
		return err
	}
	var details []string
	for _, part := range parts {
		details = append(details, fault.Of(part).Detail)
	}
	return fault.Wrap(err, fault.Of(parts[0]).Code, "%s", strings.Join(details, "; "))
}

func (l *Local) activateRelease(ctx context.Context, who keystore.Authority, args ActivateRelease) (problemAnswer, error) {
	if err := release.CheckID(args.ID); err != nil {
		return problemAnswer{}, err
	}
	if l.Activate == nil {
		return problemAnswer{}, fault.New(fault.Unavailable, "this server activates no releases: runner dev serves the app directory")
	}
	return problemOf(l.Activate(ctx, release.Activation{ID: args.ID, Origin: release.Deploy, By: authorOf(who), Expected: args.Expected}), "release not activated; the active one is kept: ")
}

// Releases returns the stored releases and the pointer.
func (c *Client) Releases(ctx context.Context) (ReleaseList, error) {
	return ask[ReleaseList](ctx, c, "releases.list", struct{}{})
}

// Release returns a stored release with its schema files. The error is a fault with the code
// Unavailable if one of them is damaged or missing.
func (c *Client) Release(ctx context.Context, id string) (ReleaseSources, error) {
	return ask[ReleaseSources](ctx, c, "releases.get", ReleaseID{ID: id})
}

// MissingFiles returns the files of a manifest whose contents the node lacks.
func (c *Client) MissingFiles(ctx context.Context, m release.Manifest) ([]release.File, error) {
	missing, err := ask[MissingFiles](ctx, c, "releases.missing", m)
	return missing.Files, err
}

// AddRelease stores a release, whose contents the node has. It is not activated. The error is a fault
// with the code Invalid if the node does not accept its signatures.
func (c *Client) AddRelease(ctx context.Context, request AddRelease) (release.Release, error) {
	return ask[release.Release](ctx, c, "releases.add", request)
}

// ActivateRelease activates a stored release. The error is a *console.Problems if the release
// does not fit the node; then the active one is kept.
func (c *Client) ActivateRelease(ctx context.Context, request ActivateRelease) error {
	answer, err := ask[problemAnswer](ctx, c, "releases.activate", request)
	return errors.Join(err, answer.problem())
}

// PutFile sends the contents of a file to the node.
func (c *Client) PutFile(ctx context.Context, f release.File, contents io.Reader) error {
	return c.put(ctx, f, contents)
}

// put stores an uploaded file.
func (l *Local) put(ctx context.Context, f release.File, contents io.Reader) error {
	if f.Size < 0 || f.Size > release.MaxFileBytes {
		return tooLarge(f.Size)
	}
	return l.Store.PutBlobAs(ctx, contents, f.Digest, f.Size)
}

func tooLarge(size int64) error {
	return fault.New(fault.TooLarge, "the file has %d bytes, and the limit is %d", size, release.MaxFileBytes)
}

// uploadOf returns the file that a request uploads, whose path ends with the digest.
func uploadOf(r *http.Request, digest string) (f release.File, err error) {
	if f.Digest, err = store.ParseDigest(digest); err != nil {
		return f, fault.New(fault.Invalid, "the path ends with %v", err)
	}
	if f.Size = r.ContentLength; f.Size < 0 {
		return f, fault.New(fault.Invalid, "the length of the file is missing: send Content-Length")
	}
	return f, nil
}

// sendFile sends an upload.
func (p *peer) sendFile(ctx context.Context, f release.File, contents io.Reader) error {
	request, err := p.request(ctx, http.MethodPut, strings.TrimPrefix(blobPath, "/")+f.Digest.String(), contents)
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
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxMessage))
	if err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("send %s: %w", f.Name, errors.Join(err, refused(answer, body)))
	}
	return nil
}
