package cluster

import (
	"errors"
	"time"

	"runner.example/internal/level"
	"runner.example/state/store"
)

// ParseInvitation reads the text of an invitation.
func ParseInvitation(text string) error {
	_, err := parseToken(text)
	return err
}

// PutSamples writes a record of each kind.
func PutSamples(tx *store.Tx, at time.Time) error {
	member := record{
		Peer: Peer{Name: "n1", Role: Voter, Address: "10.0.0.1:9400"}, Certificate: []byte{1, 2, 3}, Leaving: true,
		Levels: level.Range{Oldest: 1, Newest: 2},
	}
	return errors.Join(
		tx.Set([]byte(keyCluster), []byte("01j0000000000000000000000a")), putRecord(tx, member),
		putRecord(tx, record{Peer: Peer{Name: "n2", Role: Edge, Address: "10.0.0.2:9400"}, Certificate: []byte{4}}),
		putInvitation(tx, []byte("secret"), Edge, at),
	)
}
