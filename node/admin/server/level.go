package server

import (
	"cmp"
	"context"
	"strconv"

	"runner.example/keystore"
	"runner.example/node/admin"
	"runner.example/node/cluster"
	"runner.example/state/audit"
	"runner.example/state/store"
)

func (l *Local) showLevel(ctx context.Context, _ keystore.Authority, _ struct{}) (cluster.LevelOverview, error) {
	if l.Cluster != nil {
		return l.Cluster.Levels(ctx)
	}
	return l.levels(), nil
}

// levels is the overview of a standalone server.
func (l *Local) levels() cluster.LevelOverview {
	return cluster.LevelOverview{Level: l.Store.Level(), Nodes: []cluster.NodeLevels{cluster.SelfLevels("")}}
}

func (l *Local) raiseLevel(ctx context.Context, who keystore.Authority, args admin.RaiseLevel) (admin.RaisedLevel, error) {
	record := func(tx *store.Tx, to int) error {
		return audit.Append(tx, audit.Record{
			RequestID: who.RequestID, Actor: audit.ActorOf(who.Caller), Action: "level.raise", Target: strconv.Itoa(to),
			Result: audit.OK, Address: who.Address,
		})
	}
	if l.Cluster != nil {
		o, err := l.Cluster.RaiseLevel(ctx, args.Level, record)
		return admin.RaisedLevel{Before: o.Level, Level: cmp.Or(args.Level, o.Target())}, err
	}
	o := l.levels()
	to := cmp.Or(args.Level, o.Target())
	if err := o.Refuse(to); err != nil {
		return admin.RaisedLevel{}, err
	}
	_, err := l.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if o.Level, err = tx.RaiseLevel(to); err != nil || o.Level == to {
			return err
		}
		return record(tx, to)
	})
	return admin.RaisedLevel{Before: o.Level, Level: to}, err
}
