package server

import (
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"slices"
	"strings"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/node/release"
	"runner.example/runtime"
	"runner.example/state/audit"
	"runner.example/state/entity/catalog"
	"runner.example/state/store"
)

// maxSources limits the schema files of an answer, in bytes. A schema that compiles is smaller.
const maxSources = 16 << 20

func (l *Local) listReleases(ctx context.Context, _ keystore.Authority, _ struct{}) (admin.ReleaseList, error) {
	all, active, err := l.Releases.List(ctx)
	return admin.ReleaseList{
		Active: active, Releases: append([]release.Release{}, all...), TrustedKeys: append(release.TrustedKeys{}, l.Releases.TrustedKeys()...),
	}, err
}

func (l *Local) getRelease(ctx context.Context, _ keystore.Authority, args admin.ReleaseID) (found admin.ReleaseSources, err error) {
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

func (l *Local) missingFiles(ctx context.Context, _ keystore.Authority, m release.Manifest) (admin.MissingFiles, error) {
	if err := m.Check(); err != nil {
		return admin.MissingFiles{}, allFaults(err)
	}
	missing, err := l.Releases.Missing(ctx, m)
	return admin.MissingFiles{Files: append([]release.File{}, missing...)}, err
}

func (l *Local) missingBlobs(ctx context.Context, _ keystore.Authority, args admin.Blobs) (admin.Blobs, error) {
	if len(args.Blobs) > admin.MaxBlobs {
		return admin.Blobs{}, fault.New(fault.TooLarge, "the question names %d blobs, and the limit is %d", len(args.Blobs), admin.MaxBlobs)
	}
	var asked []release.File
	for _, b := range args.Blobs {
		asked = append(asked, release.File{Name: b.Digest.String(), Size: b.Size, Digest: b.Digest})
	}
	missing, err := l.Releases.MissingBlobs(ctx, asked)
	found := admin.Blobs{Blobs: []admin.Blob{}}
	for _, f := range missing {
		found.Blobs = append(found.Blobs, admin.Blob{Digest: f.Digest, Size: f.Size})
	}
	return found, err
}

func (l *Local) getListing(ctx context.Context, _ keystore.Authority, args admin.ListingName) (admin.Listing, error) {
	if err := release.CheckID(args.ID); err != nil {
		return admin.Listing{}, err
	}
	text, err := l.Releases.Listing(ctx, args.ID, args.Name)
	return admin.Listing{Text: text}, err
}

func (l *Local) addRelease(ctx context.Context, who keystore.Authority, args admin.AddRelease) (release.Release, error) {
	rel, err := l.Releases.Add(ctx, args.Manifest, args.Signature, authorOf(who))
	return rel, allFaults(err)
}

// keptRelease introduces why a release was not activated.
const keptRelease = "release not activated; the active one is kept: "

func (l *Local) activateRelease(ctx context.Context, who keystore.Authority, args admin.ActivateRelease) (none struct{}, _ error) {
	if err := release.CheckID(args.ID); err != nil {
		return none, err
	}
	if l.Activate == nil {
		return none, errActivatesNothing
	}
	err := l.Activate(ctx, release.Activation{
		ID: args.ID, Origin: release.Deploy, By: authorOf(who), Expected: args.Expected,
		ReplaceApp: args.ReplaceApp, AllowEmpty: args.AllowEmpty,
	})
	return none, notActivated(err, keptRelease)
}

var errActivatesNothing = fault.New(fault.Unavailable, "this server activates no releases: runner dev serves the app directory")

func (l *Local) checkRelease(ctx context.Context, who keystore.Authority, args admin.CheckRelease) (found admin.Comparison, err error) {
	if err := args.Manifest.Check(); err != nil {
		return found, allFaults(err)
	}
	if err := matches(args.Manifest, args.Sources); err != nil {
		return found, err
	}
	if l.CheckRelease == nil {
		return found, errActivatesNothing
	}
	older, err := l.CheckRelease(ctx, args.Manifest, args.Sources, release.Activation{
		ID: args.Manifest.ID(), Origin: release.Deploy, By: authorOf(who), ReplaceApp: args.ReplaceApp, AllowEmpty: args.AllowEmpty,
	})
	if err != nil {
		return found, notActivated(err, keptRelease)
	}
	found = admin.Comparison{Excerpt: diag.List{}.Excerpt(), Plan: []catalog.Step{}}
	if older {
		return found, nil
	}
	s, steps, list, err := l.compare(ctx, args.Sources)
	if err != nil {
		return found, err
	}
	if list.HasErrors() {
		return found, notActivated(runtime.RowsRefused(args.Sources, list), keptRelease)
	}
	orphaned, err := l.orphaned(ctx, s, args.Sources)
	return admin.Comparison{Excerpt: append(list, orphaned...).Excerpt(), Plan: steps}, err
}

// matches returns an error unless the sources are the schema files of the manifest.
func matches(m release.Manifest, sources []diag.Source) error {
	digests := map[string]store.Digest{}
	for _, s := range sources {
		digests[s.Name] = sha256.Sum256(s.Text)
	}
	for _, f := range m.Files {
		if !release.IsSchema(f.Name) {
			continue
		}
		if digest, ok := digests[f.Name]; !ok || digest != f.Digest {
			return fault.New(fault.Invalid, "sources must have the text of %s with the digest of the manifest", f.Name)
		}
		delete(digests, f.Name)
	}
	for name := range digests {
		return fault.New(fault.Invalid, "sources has %q, which the manifest does not list as a schema file", name)
	}
	return nil
}

// authorOf returns who does an operation, for the audit.
func authorOf(who keystore.Authority) release.Author {
	return release.Author{Actor: audit.ActorOf(who.Caller), RequestID: who.RequestID, Address: who.Address}
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

// put stores an uploaded file.
func (l *Local) put(ctx context.Context, f release.File, contents io.Reader) error {
	if f.Size < 0 || f.Size > release.MaxFileBytes {
		return tooLarge(f.Size)
	}
	return l.Store.PutBlobAs(ctx, contents, f.Digest, f.Size)
}

// blobCost is what a blob of a batch counts at least, in bytes: about what its file takes on a disk.
const blobCost = 4 << 10

// costOf returns what blobs count beyond their bytes.
func costOf(blobs [][]byte) (more int64) {
	for _, b := range blobs {
		more += int64(max(0, blobCost-len(b)))
	}
	return more
}

// readBatch reads the body of an upload of many blobs.
func readBatch(r *http.Request) ([][]byte, error) {
	if r.ContentLength < 0 {
		return nil, fault.New(fault.Invalid, "the length of the files is missing: send Content-Length")
	}
	if r.ContentLength > admin.MaxBatchBytes {
		return nil, fault.New(fault.TooLarge, "the files have %d bytes together, and the limit of a batch is %d", r.ContentLength, admin.MaxBatchBytes)
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "the upload broke off before its end")
	}
	return admin.ReadBatch(body)
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
