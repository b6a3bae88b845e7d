package server

import (
	"context"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
)

func (l *Local) showConfig(context.Context, keystore.Authority, struct{}) (answer admin.ConfigInForce, err error) {
	if l.Settings == nil {
		return answer, fault.New(fault.Unavailable, "no server runs: its settings are known when it has started")
	}
	return admin.ConfigInForce{Settings: l.Settings()}, nil
}
