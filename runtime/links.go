package runtime

import (
	"errors"
	"slices"
	"strings"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/keystore/filelink"
	"runner.example/runtime/front"
	"runner.example/schema"
	"runner.example/state/entity"
	"runner.example/state/store"
)

// linkPath is the route of signed links.
const linkPath = schema.FilesPath + "/:token"

// addLinkPath adds the route of signed links, if rows may have files. A release of an earlier version may have routes of its
// own there: it has no signed links.
func (a *activeBundle) addLinkPath() {
	own := func(r schema.Route) bool { return strings.HasPrefix(r.Path, schema.FilesPath+"/") }
	if hasFiles(a.schema) && !slices.ContainsFunc(a.schema.Routes, own) {
		a.routes = append(a.routes, route{Route: &schema.Route{Method: "GET", Path: linkPath}, links: true})
	}
}

// hasFiles reports whether rows of the schema may have files.
func hasFiles(s *schema.Schema) bool {
	for _, e := range s.Entities {
		if slices.ContainsFunc(e.Fields, func(f *schema.Field) bool { return f.Type.Kind == schema.FileKind }) {
			return true
		}
	}
	return false
}

// serveLink sends the file of a signed link. It does not check the caller. It reads the store only if this app has signed the
// token. Every link that does not work gets the same 404.
func (r *Runtime) serveLink(a *activeBundle, s *requestState, x *front.Exchange) error {
	link, err := filelink.Verify(r.opt.Keystore, x.Request.Params[0].Value, r.opt.Keystore.Now())
	if err != nil {
		x.NoStore = true
		return errNoFile
	}
	s.startDeadline(r.serving, s.route.timeout)
	var file schema.File
	has := false
	err = r.opt.Store.View(s.deadline, func(tx *store.Tx) error {
		current, err := link.IsCurrent(tx)
		if err != nil || !current {
			return err
		}
		file, has, err = a.host.Entities.FileOf(tx, link.Owner)
		return err
	})
	switch {
	case errors.Is(err, entity.ErrOutdated):
		return err
	case err != nil:
		return storeFault(err)
	case !has || file.ID != link.File:
		x.NoStore = true // a node that lags behind may have the row a moment later
		return errNoFile
	}
	var answer abi.Response
	hostabi.SendFile(&answer, 200, file, link.Disposition.Text(), link.Name)
	answer.AddHeader([]byte("cache-control"), []byte("private, no-cache"))
	answer.AddHeader([]byte("referrer-policy"), []byte("no-referrer"))
	return r.sendFile(x, &answer)
}
