package server

import (
	"context"
	"reflect"
	"slices"

	"runner.example/internal/fault"
	"runner.example/keystore"
	"runner.example/node/admin"
)

// handler runs an operation of the table in package admin.
type handler struct {
	name         string
	role         keystore.Role
	commits      bool
	args, result reflect.Type
	do           func(l *Local, ctx context.Context, who keystore.Authority, args []byte) (any, error)
}

// handlers are those of all operations, by name. Streams have none.
var handlers = byName(
	handle(admin.OpStatus, (*Local).status),
	handle(admin.OpCreateKey, (*Local).createKey),
	handle(admin.OpGetKey, (*Local).getKey),
	handle(admin.OpListKeys, (*Local).listKeys),
	handle(admin.OpRotateKey, (*Local).rotateKey),
	handle(admin.OpRevokeKey, restrictKey((*keystore.Keystore).Revoke)),
	handle(admin.OpDisableKey, restrictKey((*keystore.Keystore).Disable)),
	handle(admin.OpEnableKey, (*Local).enableKey),
	handle(admin.OpCreatePlatformKey, (*Local).createPlatformKey),
	handle(admin.OpListPlatformKeys, (*Local).listPlatformKeys),
	handle(admin.OpRotatePlatformKey, (*Local).rotatePlatformKey),
	handle(admin.OpRevokePlatformKey, (*Local).revokePlatformKey),
	handle(admin.OpCreateSession, (*Local).createSession),
	handle(admin.OpListSessions, (*Local).listSessions),
	handle(admin.OpRevokeSession, (*Local).revokeSession),
	handle(admin.OpRevokeSessions, (*Local).revokeSessions),
	handle(admin.OpRevokeLinks, (*Local).revokeLinks),
	handle(admin.OpGetRow, (*Local).getRow),
	handle(admin.OpListRows, (*Local).listRows),
	handle(admin.OpExplainRows, (*Local).explainRows),
	handle(admin.OpImportRows, (*Local).importRows),
	handle(admin.OpFilesToImport, (*Local).filesToImport),
	handle(admin.OpUpdateRows, (*Local).updateRows),
	handle(admin.OpDeleteRows, (*Local).deleteRows),
	handle(admin.OpDropKept, (*Local).dropKept),
	handle(admin.OpCallEach, (*Local).callEach),
	handle(admin.OpCallFunction, (*Local).callFunction),
	handle(admin.OpListJobs, (*Local).listJobs),
	handle(admin.OpGetJob, (*Local).getJob),
	handle(admin.OpRetryJob, (*Local).retryJob),
	handle(admin.OpCancelJob, (*Local).cancelJob),
	handle(admin.OpCancelJobs, (*Local).cancelJobs),
	handle(admin.OpEnqueueJob, (*Local).enqueueJob),
	handle(admin.OpListRecorded, (*Local).listRecorded),
	handle(admin.OpShowRecorded, (*Local).showRecorded),
	handle(admin.OpExportRecorded, (*Local).exportRecorded),
	handle(admin.OpDeleteRecorded, (*Local).deleteRecorded),
	handle(admin.OpReplay, (*Local).replay),
	handle(admin.OpListAudit, (*Local).listAudit),
	handle(admin.OpVerifyAudit, (*Local).verifyAudit),
	handle(admin.OpVerifyStore, (*Local).verifyStore),
	handle(admin.OpCompareSchema, (*Local).compareSchema),
	handle(admin.OpShowConfig, (*Local).showConfig),
	handle(admin.OpListRoutes, (*Local).listRoutes),
	handle(admin.OpReload, (*Local).reload),
	handle(admin.OpListReleases, (*Local).listReleases),
	handle(admin.OpGetRelease, (*Local).getRelease),
	handle(admin.OpMissingFiles, (*Local).missingFiles),
	handle(admin.OpMissingBlobs, (*Local).missingBlobs),
	handle(admin.OpGetListing, (*Local).getListing),
	handle(admin.OpAddRelease, (*Local).addRelease),
	handle(admin.OpCheckRelease, (*Local).checkRelease),
	handle(admin.OpActivateRelease, (*Local).activateRelease),
	handle(admin.OpShowClock, (*Local).showClock),
	handle(admin.OpAcceptClock, (*Local).acceptClock),
	handle(admin.OpRecordBackup, (*Local).recordBackup),
	handle(admin.OpShowLevel, (*Local).showLevel),
	handle(admin.OpRaiseLevel, (*Local).raiseLevel),
	handle(admin.OpInviteNode, (*Local).inviteNode),
	handle(admin.OpClusterStatus, (*Local).clusterStatus),
	handle(admin.OpLeaveCluster, (*Local).leaveCluster),
)

func byName(all ...handler) map[string]handler {
	named := map[string]handler{}
	for _, h := range all {
		named[h.name] = h
	}
	return named
}

// handle returns the handler that decodes the arguments of op and calls do. An unknown member is refused:
// what it asks for would silently not be done.
func handle[A, R any](op admin.Operation[A, R], do func(l *Local, ctx context.Context, who keystore.Authority, args A) (R, error)) handler {
	return handler{op.Name, op.Role, op.Commits, reflect.TypeFor[A](), reflect.TypeFor[R](), func(l *Local, ctx context.Context, who keystore.Authority, text []byte) (any, error) {
		var args A
		if err := readJSON(text, &args); err != nil {
			return nil, err
		}
		return do(l, ctx, who, args)
	}}
}

// streams are the operations that send or answer with bytes. uploads are those that are a PUT of a path of their own.
var (
	uploads = []admin.Stream{admin.OpUpload, admin.OpUploadBatch, admin.OpPutFile}
	streams = append([]admin.Stream{admin.OpBackup, admin.OpReadFile}, uploads...)
)

// isUpload reports whether the operation with that name is a PUT.
func isUpload(name string) bool {
	return slices.ContainsFunc(uploads, func(s admin.Stream) bool { return s.Name == name })
}

// roleOf returns the role that the operation with that name needs over the network.
func roleOf(name string) (role keystore.Role, ok bool) {
	for _, s := range streams {
		if s.Name == name {
			return s.Role, true
		}
	}
	h, ok := handlers[name]
	return h.role, ok
}

func unknownOperation(name string) error {
	return fault.New(fault.NotFound, "unknown operation %q: is the server older than the command?", name).
		WithHint("runner version and runner status show the versions of both")
}
