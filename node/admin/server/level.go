package server

import (
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
	return cluster.LevelOverview{Level: l.Store.Level(), Nodes: []cluster.NodeLevels{cluster.SelfLevels("")}}, nil
}

func (l *Local) raiseLevel(ctx context.Context, who keystore.Authority, args admin.RaiseLevel) (admin.RaisedLevel, error) {
	o, err := l.showLevel(ctx, who, struct{}{})
	if err != nil {
		return admin.RaisedLevel{}, err
	}
	to := args.To
	if to == 0 {
		to = o.Target()
	}
	record := func(tx *store.Tx) error {
		return audit.Append(tx, audit.Record{
			RequestID: who.RequestID, Actor: audit.ActorOf(who.Caller), Action: "level.raise", Target: strconv.Itoa(to),
			Result: audit.OK, Address: who.Address,
		})
	}
	if l.Cluster != nil {
		before, err := l.Cluster.RaiseLevel(ctx, o, to, record)
		return admin.RaisedLevel{Before: before, Level: to}, err
	}
	if err := o.Refuse(to); err != nil {
		return admin.RaisedLevel{}, err
	}
	before := o.Level
	_, err = l.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if before, err = tx.RaiseLevel(to); err != nil || before == to {
			return err
		}
		return record(tx)
	})
	return admin.RaisedLevel{Before: before, Level: to}, err
}
