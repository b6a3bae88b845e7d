package assets

import (
	"bytes"
	"encoding/hex"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"runner.example/hostabi/abi"
	"runner.example/internal/tree"
	"runner.example/runtime/content"
	"runner.example/schema"
)

// The names of files with a meaning.
const (
	indexName    = "index.html"
	notFoundName = "404.html"
)

// The values of Cache-Control.
const (
	cacheHashed         = "public, max-age=31536000, immutable"
	cacheHashedPrivate  = "private, max-age=31536000, immutable"
	cacheOthers         = "no-cache"
	cacheOthersPrivate  = "private, no-cache"
	frameAncestors      = "frame-ancestors 'self'"
	contentPolicyHeader = "Content-Security-Policy"
)

// Options are what sites share.
type Options struct {
	// Open opens the content of a file that is not kept in memory, as it is. If it is nil, or returns nil without an error,
	// the content is read as a whole from the tree.
	Open func(tree.File) (content.Source, error)
	// Memory is shared by all sites of a release.
	Memory *Memory
}

// Site is a directory of assets in one release. It is safe for concurrent use.
type Site struct {
	path    string // "" for the root
	private bool   // credentials guard it
	files   map[string]*File
	// moved are the locations of paths without their slash.
	moved map[string]string
	// spa and notFound answer navigations to other paths; nil: the site has no such page.
	spa, notFound *Answer
	headers       []abi.Pair
	moves         *abi.Response // a redirect without its Location
	tree          *tree.Tree
	opt           Options
}

// File is a file of a site.
type File struct {
	file     tree.File
	site     *Site
	identity Form
	// shrinks reports that there may be compressed forms, now or later.
	shrinks  bool
	forms    [encodings]atomic.Pointer[Form]
	location string // its own path
	answer   Answer
}

// New returns the site of the files of t, as a release declares it.
func New(declared *schema.Assets, t *tree.Tree, opt Options) *Site {
	s := &Site{
		path: strings.TrimSuffix(declared.Path, "/"), private: declared.Auth.ChecksCredentials(), files: map[string]*File{}, moved: map[string]string{},
		headers: headersOf(declared), tree: t, opt: opt,
	}
	s.moves = s.response(308, s.cacheControl(false), false, false)
	for _, listed := range t.List() {
		f := s.add(listed)
		if listed.Path == declared.SPA {
			s.spa = &Answer{File: f, Response: s.response(200, s.cacheControl(false), true, f.shrinks)}
		}
		if listed.Path == notFoundName {
			s.notFound = &Answer{File: f, Response: s.response(404, s.cacheControl(false), true, f.shrinks)}
		}
	}
	return s
}

// cacheControl returns the value of that header for names with a hash, and for others.
func (s *Site) cacheControl(hashed bool) string {
	switch {
	case hashed && s.private:
		return cacheHashedPrivate
	case hashed:
		return cacheHashed
	case s.private:
		return cacheOthersPrivate
	}
	return cacheOthers
}

// response returns an answer with the headers of the site. byAccept and byEncoding say which headers of a request it
// depends on.
func (s *Site) response(status int, cache string, byAccept, byEncoding bool) *abi.Response {
	headers := append(slices.Clip(s.headers), pair("Cache-Control", cache))
	switch {
	case byAccept && byEncoding:
		headers = append(headers, pair("Vary", "Accept, Accept-Encoding"))
	case byAccept:
		headers = append(headers, pair("Vary", "Accept"))
	case byEncoding:
		headers = append(headers, pair("Vary", "Accept-Encoding"))
	}
	return &abi.Response{Status: status, Headers: headers}
}

func pair(name, value string) abi.Pair { return abi.Pair{Name: []byte(name), Value: []byte(value)} }

// add adds a file to the table. index.html is its directory too.
func (s *Site) add(listed tree.File) *File {
	media, shrinks := typeOf(listed.Path)
	f := &File{file: listed, site: s, shrinks: shrinks && listed.Size >= minCompressed, location: escape(s.path + "/" + listed.Path)}
	tag := hex.EncodeToString(listed.SHA256[:16])
	f.identity.set(f, Identity, listed.Size, media, `"`+tag+`"`)
	f.answer = Answer{File: f, Response: s.response(200, s.cacheControl(isHashed(listed.Path)), false, f.shrinks)}
	s.files["/"+listed.Path] = f
	if path.Base(listed.Path) == indexName {
		dir := "/" + strings.TrimSuffix(listed.Path, indexName)
		s.files[dir] = f
		s.moved[strings.TrimSuffix(dir, "/")] = escape(s.path + dir)
	}
	return f
}

// headersOf returns the headers of all answers of a site: the defaults, with what the schema says.
func headersOf(declared *schema.Assets) (all []abi.Pair) {
	set := []schema.Header{
		{Name: "X-Content-Type-Options", Value: "nosniff"}, {Name: "Referrer-Policy", Value: "strict-origin-when-cross-origin"},
		{Name: contentPolicyHeader, Value: frameAncestors},
	}
	for _, h := range declared.Headers {
		at := slices.IndexFunc(set, func(d schema.Header) bool { return strings.EqualFold(d.Name, h.Name) })
		if strings.EqualFold(h.Name, contentPolicyHeader) && h.Value != "" && !strings.Contains(strings.ToLower(h.Value), "frame-ancestors") {
			h.Value = strings.TrimRight(h.Value, "; ") + "; " + frameAncestors
		}
		if at < 0 {
			set = append(set, h)
		} else {
			set[at] = h
		}
	}
	for _, h := range set {
		if h.Value != "" {
			all = append(all, pair(h.Name, h.Value))
		}
	}
	return all
}

// Path returns the rest of a decoded path that the site is for: empty, or with a slash at its beginning.
func (s *Site) Path(decoded []byte) (rest []byte, ok bool) {
	if len(decoded) < len(s.path) || string(decoded[:len(s.path)]) != s.path {
		return nil, false
	}
	rest = decoded[len(s.path):]
	return rest, len(rest) == 0 || rest[0] == '/'
}

// Answer is what a site answers: a file, a redirect, or neither.
type Answer struct {
	// File is the body; nil: there is none.
	File *File
	// Response has the status and the headers, and is not changed. A file with the status 404 is the page that says that
	// the file does not exist. Nil: the site has no answer.
	Response *abi.Response
	// Location is the path to go to, percent-encoded; empty: the answer is not a redirect.
	Location string
}

// Find returns the answer to a request for the rest of a path, which Path has returned. navigates is what Navigates says of
// the request.
func (s *Site) Find(rest []byte, navigates bool) Answer {
	if f := s.files[string(rest)]; f != nil {
		return f.answer
	}
	if to, ok := s.moved[string(rest)]; ok {
		return s.redirect(to)
	}
	if plain, ok := bytes.CutSuffix(rest, []byte("/")); ok && len(plain) > 0 && plain[len(plain)-1] != '/' {
		if f := s.files[string(plain)]; f != nil {
			return s.redirect(f.location)
		}
	}
	switch {
	case s.spa != nil && navigates:
		return *s.spa
	case s.notFound != nil && navigates:
		return *s.notFound
	}
	return Answer{}
}

func (s *Site) redirect(to string) Answer { return Answer{Response: s.moves, Location: to} }

// VariesByAccept reports whether a path without a file has another answer for navigations.
func (s *Site) VariesByAccept() bool { return s.spa != nil || s.notFound != nil }

// Has reports whether the site answers with other than "not found".
func (a Answer) Has() bool { return a.Response != nil && a.Response.Status != 404 }

// Form returns the form of the file for a request with this Accept-Encoding header: of those that the client likes best, the
// smallest.
func (f *File) Form(acceptEncoding []byte) *Form {
	if !f.shrinks || len(acceptEncoding) == 0 {
		return &f.identity
	}
	best, most := &f.identity, 0
	for e, q := range accepted(acceptEncoding) {
		if form := f.forms[e].Load(); form != nil && q > 0 && (q > most || q == most && form.Content.Size < best.Content.Size) {
			best, most = form, q
		}
	}
	return best
}

// escape percent-encodes a path. All but unreserved characters and slashes are encoded, so that the result can be sent in
// a Location header. It begins with one slash.
func escape(plain string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(plain) {
		if isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("/-._~!$&'()*+,;=:@", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}
