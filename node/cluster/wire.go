package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"runner.example/internal/console"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/internal/level"
)

// The operations between nodes: POST /<operation> with JSON, except snapshot and blob, whose answer
// is a stream.
const (
	opJoin     = "join"
	opMember   = "member"
	opState    = "state"
	opApplied  = "applied"
	opChain    = "chain"
	opPrepare  = "prepare"
	opActivate = "activate"
	opSnapshot = "snapshot"
	opBlob     = "blob"
	opKeepBlob = "keepBlob"
)

// joinRequest is what a machine with an invitation sends.
type joinRequest struct {
	Secret []byte `json:"secret"`
	Peer
	// CSR is the request for a certificate, in DER form (PKCS #10).
	CSR []byte `json:"request"`
	// Levels are those that the runner of the machine knows.
	Levels level.Range `json:"levels,omitzero"`
}

// joinAnswer is what it gets, and makes it a node.
type joinAnswer struct {
	Cluster     string   `json:"cluster"`
	Endpoints   []string `json:"endpoints,omitempty"`
	Peers       []Peer   `json:"peers"`
	CA          []byte   `json:"authority"`
	CAKey       []byte   `json:"key,omitempty"` // of the CA, for voters
	Certificate []byte   `json:"certificate"`
	Pepper      []byte   `json:"pepper"` // the content of its file
}

// position is a place in the log, and the hash of all that was applied up to it.
type position struct {
	Seq      uint64 `json:"seq"`
	Revision uint64 `json:"revision"`
	Chain    []byte `json:"chain"`
}

// State is what a node says of itself.
type State struct {
	Peer
	// Version is that of the runner, and Levels are those that it knows.
	Version string      `json:"version"`
	Levels  level.Range `json:"levels"`
	// Applied is the newest commit that can be read.
	Applied uint64 `json:"applied"`
	// Staleness is how old the newest known state of the cluster is, in milliseconds; negative: not
	// known.
	Staleness int64 `json:"stalenessMs"`
	// Release is the id of the release that is served, or empty.
	Release string `json:"release"`
	// NotReady is why the node does not serve, or empty.
	NotReady string `json:"notReady"`
	// NoRelease: NotReady is only that no release is active.
	NoRelease bool `json:"noRelease,omitempty"`
	// NotVoting is why the etcd server of the voter does not count for the majority, or empty.
	NotVoting string `json:"notVoting,omitempty"`
	// Secrets are MACs of the values of the app's secrets, by name.
	Secrets map[string]string `json:"secrets,omitempty"`
	// Vars are MACs of the values of its variables, by name.
	Vars map[string]string `json:"vars,omitempty"`
	// Time is the node's clock.
	Time time.Time `json:"time"`
	// MissingFiles is how many files of rows the node lacked when it looked last. It fetches them.
	MissingFiles int64 `json:"missingFiles,omitempty"`

	At position `json:"position"`
}

// seqArgument names a commit.
type seqArgument struct {
	Seq uint64 `json:"seq"`
}

// chainAnswer has the hash at a commit, if the node still knows it.
type chainAnswer struct {
	Chain []byte `json:"chain,omitempty"`
}

// idArgument names a release or a blob.
type idArgument struct {
	ID string `json:"id"`
}

// errorAnswer is the answer to an operation that failed.
type errorAnswer struct {
	Code   fault.Code `json:"code"`
	Detail string     `json:"detail"`
	// Findings and Total are the diagnostics of a release that cannot be activated.
	Findings []diag.Diagnostic `json:"findings,omitempty"`
	Total    int               `json:"total,omitempty"`
}

// errorAnswerOf returns the answer for an error.
func errorAnswerOf(err error) errorAnswer {
	if problems, ok := errors.AsType[*console.Problems](err); ok {
		shown := problems.Excerpt()
		return errorAnswer{fault.Invalid, err.Error(), shown.Findings, shown.Total}
	}
	f := fault.Of(err)
	return errorAnswer{Code: f.Code, Detail: cmp.Or(f.Detail, err.Error())}
}

// err returns the error of an answer.
func (a errorAnswer) err() error {
	if len(a.Findings) == 0 {
		return fault.New(a.Code, "%s", a.Detail)
	}
	return fault.Wrap(&console.Problems{What: a.Detail, List: a.Findings, Total: a.Total}, a.Code, "%s", a.Detail)
}

const (
	// maxJSON limits requests and answers that are not streams, in bytes.
	maxJSON = 4 << 20
	// dialWait limits the time until a connection is encrypted.
	dialWait = 3 * time.Second
)

// peerClient sends operations to other nodes. Any goroutine may use it.
type peerClient struct{ http *http.Client }

func newPeerClient(config *tls.Config) *peerClient {
	dialer := &net.Dialer{Timeout: dialWait}
	return &peerClient{&http.Client{Transport: &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: config, TLSHandshakeTimeout: dialWait,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
	}}}
}

func (c *peerClient) close() { c.http.CloseIdleConnections() }

// open sends an operation, and returns its answer. The caller closes the body.
func (c *peerClient) open(ctx context.Context, address, operation string, args any) (io.ReadCloser, error) {
	body, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+"/"+operation,
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		if f, ok := errors.AsType[*fault.Fault](err); ok { // of the certificate
			return nil, f
		}
		return nil, fault.Wrap(err, fault.Unavailable, "the node at %s cannot be reached: %v", address, errors.Unwrap(err))
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	var r errorAnswer
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxJSON)).Decode(&r); err != nil || r.Code == "" {
		return nil, fault.New(fault.Unavailable, "the node at %s answered with status %d: is its runner older?",
			address, answer.StatusCode)
	}
	return nil, r.err()
}

// call sends an operation whose answer is JSON.
func call[A any](ctx context.Context, c *peerClient, address, operation string, args any) (answer A, err error) {
	body, err := c.open(ctx, address, operation, args)
	if err != nil {
		return answer, err
	}
	defer body.Close()
	if err := json.NewDecoder(io.LimitReader(body, maxJSON)).Decode(&answer); err != nil {
		return answer, fault.Wrap(err, fault.Unavailable, "the node at %s ended the connection during its answer", address)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(body, maxJSON)) // so that the connection can be used again
	return answer, err
}
