package harness

import (
	"sync"
	"sync/atomic"
)

// RevokeUnderLoad revokes a credential while callers use it, and fails the test if a request
// that started after revoke had returned was served. header has the credential.
func (s *Server) RevokeUnderLoad(callers int, header string, revoke func()) {
	s.T.Helper()
	var revoked atomic.Bool
	var late, served atomic.Int64
	var running sync.WaitGroup
	warm := make(chan struct{}, callers)
	for range callers {
		running.Go(func() {
			for first := true; ; first = false {
				after := revoked.Load() // before the request starts
				got, err := s.Try("GET", "/v1/dump", "", header)
				if err != nil {
					s.T.Error(err)
				}
				if err == nil && got.Status == 200 {
					served.Add(1)
					if after {
						late.Add(1)
					}
				}
				if first {
					warm <- struct{}{}
				}
				if after || err != nil {
					return
				}
			}
		})
	}
	for range callers {
		<-warm
	}
	revoke()
	revoked.Store(true)
	running.Wait()
	if late.Load() > 0 || served.Load() == 0 {
		s.T.Fatalf("%d requests served, %d of them started after the revocation had returned", served.Load(), late.Load())
	}
}
