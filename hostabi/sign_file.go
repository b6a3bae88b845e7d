package hostabi

import (
	"time"

	"runner.example/internal/fault"
	"runner.example/keystore/filelink"
	"runner.example/schema"
	"runner.example/state/store"
)

// signUnits is the cost of deriving a key, and of the HMAC of a token.
const signUnits = 4000

// signFile returns a signed link to a file of a row. It works while the field has that file.
func signFile(c *Call, args *arguments) (any, error) {
	link := filelink.Link{File: args.text("id")}
	lifetime, given := args.optionalSeconds("expires")
	switch {
	case !given:
		args.wrong("member %q is missing: a link needs the time after which it expires, in seconds", "expires")
	case lifetime < filelink.MinLifetime || lifetime > filelink.MaxLifetime:
		args.wrong("member %q must be from %d to %d seconds (7 days)", "expires",
			filelink.MinLifetime/time.Second, filelink.MaxLifetime/time.Second)
	}
	switch disposition, _ := args.optionalText("disposition"); disposition {
	case "":
	case filelink.Inline.Text():
		link.Disposition = filelink.Inline
	case filelink.Attachment.Text():
		link.Disposition = filelink.Attachment
	default:
		args.wrong("member %q must be inline or attachment", "disposition")
	}
	name, named := args.optionalText("name")
	if named {
		if err := schema.CheckFileName(name); err != nil {
			args.wrong("member %q is not the name of a file: it %s", "name", err)
		}
		link.Name = name
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	if c.ReadOnly {
		return nil, fault.New(fault.Denied,
			"a live route cannot sign links, because each run would make another one: sign in a route without live:")
	}
	of, ok := c.ofRows[link.File]
	if !ok {
		if _, known := c.knownFile(link.File); known {
			return nil, invalid(
				"this file is not in a row that the run has read or written: insert it, or read its row, and sign the file of the returned row")
		}
		return nil, errUnknownFile
	}
	link.Owner = of.owner
	// Times in links have whole seconds: round up, so that the link works for all of its lifetime.
	link.Expires = c.Host.Keystore.Now().Add(lifetime + time.Second - 1)
	if err := c.work.Spend(signUnits); err != nil {
		return nil, err
	}
	var token string
	sign := func(tx *store.Tx) (err error) {
		token, err = filelink.Sign(c.Host.Keystore, tx, link)
		return err
	}
	var err error
	if c.Tx != nil {
		err = sign(c.Tx)
	} else { // the answer has begun
		err = c.Host.Store.View(c.Context, sign)
	}
	return struct {
		URL string `json:"url"`
	}{schema.FilesPath + "/" + token}, err
}
