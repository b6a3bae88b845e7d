// Package deploy sends the release of an app directory to a node, compares releases for people, and
// activates them.
//
//	Read ─► Upload.Plan: what the node lacks, and the difference ─► Upload.Send ─► Plan.Activate
//
// Read reports all errors of the app before anything is sent. Send sends only files that the node
// lacks. The node keeps each file that has arrived. So if a deployment is interrupted, the next one
// sends only the rest. Activate fails if another release was activated after Plan. ReadKey reads the
// key that signs the release; only the signature is sent.
//
// A Difference is computed on the side of the client, from the schema files of both releases. The
// node adds what its rows and keys say about the new schema.
package deploy
