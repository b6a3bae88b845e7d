// Package jobs keeps the jobs of an app in the store: work that handlers enqueue for later.
//
// A job is enqueued in the transaction of a request, so it exists if and only if the request was
// committed. It runs in a transaction of its own, which has its writes and its completion: so its
// rows are written exactly once, and what it sends is sent at least once.
//
//	            claim                 Complete
//	waiting ─────────────► running ────────────────► done
//	   ▲                    │ │ │
//	   └────────────────────┘ │ └── Cancel ────────► cancelled
//	     Fail, after a pause, │
//	     or the lease is over └─── Fail, the last ─► failed
//
// Cancel ends a waiting job too, and Retry lets a failed or cancelled one wait again. A run that the
// server has to stop is released: the job waits again, and the run does not count as failed.
//
// # Leases
//
// To claim a job is to write into its record which node runs it, and until when: the lease. The
// transaction of the run reads the record, so it cannot be committed after anybody else has changed
// it: when the lease was over and another node claimed the job, or when it was cancelled. Any node
// may claim any job, and fire any schedule; the store decides who was first.
//
// # Keys
//
//	jobs/j/<id>                   the record
//	jobs/w/<group><due><id>       a waiting job
//	jobs/r/<id>                   a running job: its lease
//	jobs/k/<hash>                 the live job with a key
//	jobs/c/<hash><n>              a running job that counts against a concurrency limit
//	jobs/f/<ended><id>            a failed job
//	jobs/e/<expires><id>          when a job that ended is deleted
//	jobs/s/<name>                 when a schedule fires next
//	jobs/p/<hash>                 a selection of jobs that are not claimed for a while
//
// A group is the jobs of one name, tenant and value that their concurrency is counted by. Jobs
// without a tenant are divided by a hash of their callers. A node keeps the groups in memory, not
// the jobs, and follows the store: a waiting job costs requests nothing, and nothing polls. Within
// a group jobs are claimed in the order in which they are due; in a cluster, any of the first that
// are due. Between tenants, and between the jobs of a tenant, the slots are shared. Groups are read
// from where the last reading ended: deleted keys before it would have to be passed over.
//
// # Limits
//
// How many jobs may wait is limited for each tenant, and for each name in it: so a handler or a job that
// enqueues without end leaves the rest to the other names. CancelSome ends such jobs: it first writes that
// nobody claims them, and then cancels what runs and what waits, in batches.
//
// # Time
//
// The time is given by the caller. It must not go back: see keystore.Keystore.Now.
package jobs
