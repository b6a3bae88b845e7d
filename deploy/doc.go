// Package deploy sends the release of an app directory to a node, compares releases for people, and
// activates them.
//
//	Read ─► Local.Plan: what the node lacks, and the difference ─► Local.Send ─► Activate
//
// Read reports all errors of the app before anything is sent. Send sends only files that the node
// lacks. What has arrived is kept, so a deployment that was cut short goes on with the file that was
// cut short. Activate fails if another release than the one of the plan is active. ReadKey reads the key
// that signs the release; only the signature is sent.
//
// A Difference is computed on the side of the client, from the schema files of both releases. The
// node adds what its rows and keys say about the new schema.
package deploy
