package admin

import (
	"context"

	"runner.example/state/audit"
)

const (
	// DefaultRecords is how many records a list of the audit has without a limit, MaxRecords the most.
	DefaultRecords = 100
	MaxRecords     = 10_000
)

// ListAudit selects records.
type ListAudit struct {
	// From is the sequence number of the first record; 0: the newest Limit records.
	From uint64 `json:"from,omitempty"`
	// Limit is 1-10,000; 0: 100.
	Limit int `json:"limit,omitempty"`
}

// VerifyAudit names the head to verify the chain against.
type VerifyAudit struct {
	// Head is a head that was kept, as the log shows it, or empty.
	Head string `json:"head,omitempty"`
}

// AuditHead is the end of the chain.
type AuditHead struct {
	Count uint64 `json:"count"`
	// Head can be given to a later VerifyAudit.
	Head string `json:"head"`
}

// ListAudit returns audit records in the order of the hash chain.
func (c *Client) ListAudit(ctx context.Context, request ListAudit) ([]audit.Entry, error) {
	return ask(ctx, c, OpListAudit, request)
}

// VerifyAudit recomputes the hash chain over all records.
func (c *Client) VerifyAudit(ctx context.Context, request VerifyAudit) (AuditHead, error) {
	return ask(ctx, c, OpVerifyAudit, request)
}
