package cluster

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"runner.example/internal/fault"
	"runner.example/internal/level"
	"runner.example/internal/secret"
	"runner.example/state/store"
)

// InvitationLife is how long an invitation can be used.
const InvitationLife = 15 * time.Minute

// tokenPrefix begins the text of an invitation, so that people and scanners of secrets know it.
const tokenPrefix = "runner-join-"

// token is the content of an invitation.
type token struct {
	Address     string `json:"a"` // of the node that made it
	Fingerprint []byte `json:"f"` // of the CA
	Secret      []byte `json:"s"`
	Role        Role   `json:"r"`
}

func (t token) text() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic("BUG: encode an invitation: " + err.Error())
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(text)
}

// parseToken reads the text of an invitation.
func parseToken(text string) (t token, err error) {
	invalid := fault.New(fault.Invalid,
		"the invitation is not valid: give join the whole line that runner cluster invite has printed")
	body, ok := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	if !ok {
		return t, invalid
	}
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(raw, &t) != nil {
		return t, invalid
	}
	if len(t.Fingerprint) != sha256.Size || len(t.Secret) != secretLen || checkListen(t.Address) != nil ||
		t.Role != Voter && t.Role != Edge {
		return t, invalid
	}
	return t, nil
}

// secretLen is the length of the secret of an invitation in bytes.
const secretLen = 32

// invitation is the record of one that was not used. Its key has the hash of the secret.
type invitation struct {
	Role    Role      `json:"role"`
	Expires time.Time `json:"expires"`
}

const (
	prefixInvitations = "cluster/invitations/"
	prefixNodes       = "cluster/nodes/"
	keyCluster        = "cluster/id"
)

func invitationKey(secret []byte) []byte {
	sum := sha256.Sum256(secret)
	return []byte(prefixInvitations + hex.EncodeToString(sum[:]))
}

// Invite makes an invitation for one machine, which can be used once within InvitationLife. It does not
// check rights; its caller must. It needs a voter: on an edge node the error has the code Invalid.
func (n *Node) Invite(ctx context.Context, role Role) (secret.Text, error) {
	if n.id.Role != Voter {
		return secret.Text{}, fault.New(fault.Invalid,
			"the node %q is an edge node, and cannot sign certificates: run the command on a voter", n.id.Name)
	}
	a, err := readCA(n.data)
	if err != nil {
		return secret.Text{}, err
	}
	t := token{Address: n.id.Address, Secret: make([]byte, secretLen), Role: role}
	rand.Read(t.Secret)
	sum := a.fingerprint()
	t.Fingerprint = sum[:]
	_, err = n.store.Update(ctx, func(tx *store.Tx) error {
		if err := n.checkSelf(tx); err != nil {
			return err
		}
		if err := dropExpired(tx); err != nil {
			return err
		}
		return putInvitation(tx, t.Secret, role, tx.Now().Add(InvitationLife))
	})
	if err != nil {
		return secret.Text{}, err
	}
	return secret.New(t.text()), nil
}

func putInvitation(tx *store.Tx, secret []byte, role Role, expires time.Time) error {
	text, err := json.Marshal(invitation{Role: role, Expires: expires})
	if err != nil {
		return err
	}
	return tx.Set(invitationKey(secret), text)
}

// dropExpired deletes invitations that can no longer be used.
func dropExpired(tx *store.Tx) error {
	var old [][]byte
	for item, err := range tx.Scan([]byte(prefixInvitations), nil, false) {
		if err != nil {
			return err
		}
		var i invitation
		if json.Unmarshal(item.Value, &i) != nil || !tx.Now().Before(i.Expires) {
			old = append(old, append([]byte(nil), item.Key...))
		}
	}
	for _, key := range old {
		if err := tx.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

// invitationOf returns the invitation with that secret, if it can be used.
func invitationOf(tx *store.Tx, secret []byte) (i invitation, err error) {
	text, err := tx.Get(invitationKey(secret))
	if errors.Is(err, store.ErrNotFound) {
		return i, fault.New(fault.Denied,
			"the invitation was used, or has expired: make another one with runner cluster invite; if a join was interrupted, first remove its node with runner cluster leave, if runner cluster status lists it")
	}
	if err != nil {
		return i, err
	}
	if err := json.Unmarshal(text, &i); err != nil {
		return i, err
	}
	if !tx.Now().Before(i.Expires) {
		return i, fault.New(fault.Denied, "the invitation has expired: make another one with runner cluster invite")
	}
	return i, nil
}

// redeem takes an invitation, and records its node with its certificate, in PEM form, and the levels that it
// knows.
func redeem(tx *store.Tx, secret []byte, node Peer, certificate []byte, levels level.Range) error {
	if err := checkLevels(tx, levels); err != nil {
		return err
	}
	i, err := invitationOf(tx, secret)
	if err != nil {
		return err
	}
	if i.Role != node.Role {
		return fault.New(fault.Denied, "the invitation is for a node with the role %s", i.Role)
	}
	all, err := nodesIn(tx)
	if err != nil {
		return err
	}
	for _, other := range all {
		switch {
		case other.Name == node.Name:
			return fault.New(fault.Conflict,
				"the cluster has a node with the name %q: choose another one with --name, or remove that node with runner cluster leave %s",
				node.Name, node.Name)
		case portsOverlap(other.Address, node.Address):
			return fault.New(fault.Conflict,
				"the ports of %s (it and the two after it) meet those of the node %q: choose another address with --listen",
				node.Address, other.Name)
		}
	}
	if err := tx.Delete(invitationKey(secret)); err != nil {
		return err
	}
	return putRecord(tx, newRecord(node, certificate, levels))
}
