package server

import (
	"context"
	"errors"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/state/audit"
	"runner.example/state/store"
)

func (l *Local) listAudit(ctx context.Context, _ keystore.Authority, args admin.ListAudit) ([]audit.Entry, error) {
	switch {
	case args.Limit == 0:
		args.Limit = admin.DefaultRecords
	case args.Limit < 0 || args.Limit > admin.MaxRecords:
		return nil, fault.New(fault.Invalid, "limit must be between 1 and %d", admin.MaxRecords)
	}
	var entries []audit.Entry
	var err error
	if args.From == 0 {
		entries, err = audit.Newest(ctx, l.Store, args.Limit)
	} else {
		entries, err = audit.List(ctx, l.Store, args.From, args.Limit)
	}
	return append([]audit.Entry{}, entries...), err
}

func (l *Local) verifyAudit(ctx context.Context, _ keystore.Authority, args admin.VerifyAudit) (admin.AuditHead, error) {
	var want []audit.Head
	if args.Head != "" {
		head, err := audit.ParseHead(args.Head)
		if err != nil {
			return admin.AuditHead{}, fault.New(fault.Invalid, "%v", err)
		}
		want = []audit.Head{head}
	}
	err := l.Store.Verify(ctx)
	var head audit.Head
	if err == nil {
		head, err = audit.Verify(ctx, l.Store, want...)
	}
	if errors.Is(err, store.ErrDamaged) {
		err = fault.New(fault.Invalid, "%v", err) // the socket passes on the text
	}
	return admin.AuditHead{Count: head.Count, Head: head.String()}, err
}
