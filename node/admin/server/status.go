package server

import (
	"context"
	"os"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/system/process"
	"runner.example/internal/version"
	"runner.example/keystore"
	"runner.example/node/admin"
)

func (l *Local) status(ctx context.Context, who keystore.Authority, _ struct{}) (admin.Status, error) {
	health := l.Store.Health()
	v := version.Read()
	s := admin.Status{
		PID: os.Getpid(), Version: v.Version, Commit: v.Commit, URL: l.URL, Sequence: uint64(health.Applied), Writable: health.Writable,
		Level: l.Store.Level(), Vars: []admin.VarStatus{}, Nodes: []admin.NodeVersion{}, Backup: l.LastBackup(),
	}
	if who.Schema != nil {
		s.App = who.Schema.App
		for _, v := range who.Schema.Vars {
			s.Vars = append(s.Vars, admin.VarStatus{Name: v.Name, Type: v.Type, From: v.From})
		}
	}
	if health.NotWritable != nil {
		s.NotWritable = health.NotWritable.Error()
	}
	if l.Runtime == nil || l.URL == "" {
		return s, nil // no server runs: a command has opened the store
	}
	s.Metrics = l.MetricsURL
	if l.Active != nil {
		s.Release = l.Active()
	}
	if l.Cluster != nil {
		cluster, err := l.Cluster.Status(ctx)
		if err != nil {
			return s, err
		}
		for _, n := range cluster.Nodes {
			s.Nodes = append(s.Nodes, admin.NodeVersion{Name: n.Name, Version: n.Version, Release: n.Release})
		}
	}
	if l.Remote != nil {
		s.Admin, s.AdminFingerprint = l.RemoteURL, l.Remote.Fingerprint()
	}
	s.Uptime = int64(time.Since(l.Started) / time.Second)
	if err := l.Runtime.NotReady(); err != nil {
		s.NotReady = fault.Of(err).Detail
	}
	use := l.Runtime.MemoryUse()
	s.Memory = admin.Memory{Handlers: use.HandlersLimit, HandlersUsed: use.Handlers, Bodies: use.BodiesLimit, Answers: use.AnswersLimit}
	s.Descriptors = descriptors()
	return s, nil
}

// descriptors counts the open files of this process.
func descriptors() admin.Descriptors {
	limit, _, _ := process.FileLimit() // 0: unknown
	return admin.Descriptors{Limit: limit, Open: process.OpenFiles()}
}
