package admin

import (
	"encoding/json"

	"runner.example/keystore"
	"runner.example/node/backup"
	"runner.example/node/cluster"
	"runner.example/node/release"
	"runner.example/state/audit"
	"runner.example/state/entity/catalog"
	"runner.example/state/jobs"
)

// Operation is a row of the table: an operation with the arguments A and the result R, both JSON.
type Operation[A, R any] struct {
	// Name is in the path of the request, and in the audit log.
	Name string
	// Role is the weakest one that may run it over the network.
	Role keystore.Role
	// Commits: in a cluster it is cancelled when no majority of the voters can be reached. Operations that
	// only read do not set it. Neither does reload: most nodes need no majority for it, and one that does ends by
	// itself without.
	Commits bool
}

// plain returns an operation that does not set Commits.
func plain[A, R any](name string, role keystore.Role) Operation[A, R] {
	return Operation[A, R]{Name: name, Role: role}
}

// commits returns an operation that sets Commits.
func commits[A, R any](name string, role keystore.Role) Operation[A, R] {
	return Operation[A, R]{Name: name, Role: role, Commits: true}
}

// none are the arguments of an operation that has none.
type none = struct{}

// The table of operations.
var (
	OpStatus = plain[none, Status]("status", keystore.RoleRead)

	OpCreateKey  = commits[CreateKey, keystore.Key]("apiKeys.create", keystore.RoleAdmin)
	OpGetKey     = plain[KeyID, keystore.Key]("apiKeys.get", keystore.RoleAdmin)
	OpListKeys   = plain[ListKeys, keystore.Page]("apiKeys.list", keystore.RoleAdmin)
	OpRotateKey  = commits[RotateKey, Changed[keystore.Key]]("apiKeys.rotate", keystore.RoleAdmin)
	OpRevokeKey  = commits[KeyID, Changed[keystore.Key]]("apiKeys.revoke", keystore.RoleAdmin)
	OpDisableKey = commits[KeyID, Changed[keystore.Key]]("apiKeys.disable", keystore.RoleAdmin)
	OpEnableKey  = commits[KeyID, keystore.Key]("apiKeys.enable", keystore.RoleAdmin)

	OpCreatePlatformKey = commits[CreatePlatformKey, keystore.PlatformKey]("platformKeys.create", keystore.RoleAdmin)
	OpListPlatformKeys  = plain[ListPlatformKeys, PlatformKeyList]("platformKeys.list", keystore.RoleAdmin)
	OpRotatePlatformKey = commits[RotateKey, Changed[keystore.PlatformKey]]("platformKeys.rotate", keystore.RoleAdmin)
	OpRevokePlatformKey = commits[KeyID, Changed[keystore.PlatformKey]]("platformKeys.revoke", keystore.RoleAdmin)

	OpCreateSession  = commits[CreateSession, keystore.Session]("sessions.create", keystore.RoleAdmin)
	OpListSessions   = plain[ListSessions, keystore.SessionPage]("sessions.list", keystore.RoleAdmin)
	OpRevokeSession  = commits[SessionID, Changed[keystore.Session]]("sessions.revoke", keystore.RoleAdmin)
	OpRevokeSessions = commits[RevokeSessions, Changed[RevokedSessions]]("sessions.revokeAll", keystore.RoleAdmin)

	OpRevokeLinks = commits[none, Changed[RevokedLinks]]("files.revokeLinks", keystore.RoleAdmin)

	OpGetRow        = plain[RowID, json.RawMessage]("data.get", keystore.RoleAdmin)
	OpListRows      = plain[ListRows, RowPage]("data.list", keystore.RoleAdmin)
	OpExplainRows   = plain[ExplainRows, ExplainedRows]("data.explain", keystore.RoleAdmin)
	OpImportRows    = commits[ImportRows, Imported]("data.import", keystore.RoleAdmin)
	OpFilesToImport = plain[ImportRows, FilesOfRows]("data.filesToImport", keystore.RoleAdmin)
	OpUpdateRows    = commits[ChangeRows, ChangedRows]("data.update", keystore.RoleAdmin)
	OpDeleteRows    = commits[ChangeRows, ChangedRows]("data.delete", keystore.RoleAdmin)
	OpDropKept      = commits[DropKept, Dropped]("data.drop", keystore.RoleAdmin)
	OpCallEach      = commits[CallEach, EachDone]("data.each", keystore.RoleAdmin)

	OpCallFunction = commits[CallFunction, Called]("functions.call", keystore.RoleAdmin)

	OpListJobs   = plain[jobs.Filter, jobs.Page]("jobs.list", keystore.RoleAdmin)
	OpGetJob     = plain[JobID, jobs.Job]("jobs.get", keystore.RoleAdmin)
	OpRetryJob   = commits[JobID, jobs.Job]("jobs.retry", keystore.RoleAdmin)
	OpCancelJob  = commits[JobID, jobs.Job]("jobs.cancel", keystore.RoleAdmin)
	OpCancelJobs = commits[CancelJobs, CancelledJobs]("jobs.cancelAll", keystore.RoleAdmin)
	OpEnqueueJob = commits[EnqueueJob, jobs.Enqueued]("jobs.enqueue", keystore.RoleAdmin)

	OpListRecorded   = plain[ListRecorded, []RecordedRun]("recorded.list", keystore.RoleAdmin)
	OpShowRecorded   = plain[RecordedID, json.RawMessage]("recorded.show", keystore.RoleAdmin)
	OpExportRecorded = plain[RecordedID, json.RawMessage]("recorded.export", keystore.RoleAdmin)
	OpDeleteRecorded = plain[DeleteRecorded, DeletedRecorded]("recorded.delete", keystore.RoleAdmin)
	OpReplay         = plain[Replay, json.RawMessage]("recorded.replay", keystore.RoleAdmin)

	OpListAudit   = plain[ListAudit, []audit.Entry]("audit.list", keystore.RoleAdmin)
	OpVerifyAudit = plain[VerifyAudit, AuditHead]("audit.verify", keystore.RoleAdmin)

	OpVerifyStore = plain[VerifyStore, catalog.VerifiedPart]("store.verify", keystore.RoleAdmin)

	OpCompareSchema   = plain[CompareSchema, Comparison]("schema.compare", keystore.RoleDeploy)
	OpShowConfig      = plain[none, ConfigInForce]("config.show", keystore.RoleAdmin)
	OpListRoutes      = plain[none, RouteList]("routes.list", keystore.RoleRead)
	OpReload          = plain[none, Reloaded]("reload", keystore.RoleAdmin)
	OpListReleases    = plain[none, ReleaseList]("releases.list", keystore.RoleRead)
	OpGetRelease      = plain[ReleaseID, ReleaseSources]("releases.get", keystore.RoleRead)
	OpMissingFiles    = plain[release.Manifest, MissingFiles]("releases.missing", keystore.RoleDeploy)
	OpMissingBlobs    = plain[Blobs, Blobs]("blobs.missing", keystore.RoleDeploy)
	OpGetListing      = plain[ListingName, Listing]("releases.listing", keystore.RoleRead)
	OpAddRelease      = commits[AddRelease, release.Release]("releases.add", keystore.RoleDeploy)
	OpCheckRelease    = plain[CheckRelease, Comparison]("releases.check", keystore.RoleDeploy)
	OpActivateRelease = commits[ActivateRelease, none]("releases.activate", keystore.RoleDeploy)

	OpShowClock   = plain[none, keystore.ClockState]("clock.show", keystore.RoleAdmin)
	OpAcceptClock = commits[none, keystore.ClockChange]("clock.accept", keystore.RoleAdmin)

	OpRecordBackup = plain[backup.Last, backup.Last]("backup.record", keystore.RoleAdmin)
	OpShowLevel    = plain[none, cluster.LevelOverview]("level.show", keystore.RoleRead)
	OpRaiseLevel   = commits[RaiseLevel, RaisedLevel]("level.raise", keystore.RoleAdmin)

	OpInviteNode    = commits[InviteNode, Invitation]("cluster.invite", keystore.RoleAdmin)
	OpClusterStatus = plain[none, cluster.Overview]("cluster.status", keystore.RoleRead)
	OpLeaveCluster  = commits[LeaveCluster, LeftCluster]("cluster.leave", keystore.RoleAdmin)
)

// Stream is an operation that sends or answers with bytes that are not JSON.
type Stream struct {
	Name string
	// Role is the weakest one that may run it over the network.
	Role keystore.Role
}

var (
	// OpUpload stores a file of a release: PUT BlobPath<sha256>.
	OpUpload = Stream{"blobs.put", keystore.RoleDeploy}
	// OpUploadBatch stores many small contents: PUT BatchPath, see Batch.
	OpUploadBatch = Stream{"blobs.putBatch", keystore.RoleDeploy}
	// OpPutFile stores the contents of a file of a row, for an import: PUT FilePath<sha256>.
	OpPutFile = Stream{"data.putFile", keystore.RoleAdmin}
	// OpReadFile answers with the contents of a file of a row.
	OpReadFile = Stream{"data.readFile", keystore.RoleAdmin}
	// OpBackup answers with a backup.
	OpBackup = Stream{"backup", keystore.RoleAdmin}
)
