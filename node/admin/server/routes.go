package server

import (
	"context"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
)

func (l *Local) listRoutes(_ context.Context, who keystore.Authority, _ struct{}) (list admin.RouteList, err error) {
	if who.Schema == nil || l.Runtime == nil {
		return list, fault.New(fault.NotFound, "no release is active on this node").WithHint("runner deploy sends and activates one")
	}
	body, timeout := l.Runtime.RouteDefaults()
	return admin.RouteList{Routes: admin.RoutesOf(who.Schema, body, timeout, l.Runtime.AssetFiles())}, nil
}
