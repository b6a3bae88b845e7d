//! Work for after the commit.

use crate::host::Host;
use crate::host_error::Outcome;
use crate::operation::call;
use crate::time::{format_time, seconds};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use std::time::{Duration, SystemTime};

/// Enqueues work for after the commit: jobs that the schema declares.
pub struct Jobs<'a> {
    pub(crate) host: &'a dyn Host,
}

/// When a job runs, and under which key. The default lets it run as soon as the request is
/// committed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct JobOptions {
    /// How long it waits.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    pub delay: Option<Duration>,
    /// When it runs; a time that has passed means at once. Not together with `delay`.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "time")]
    pub at: Option<SystemTime>,
    /// There is one live job of this name and key in a tenant: while it waits or runs, it is
    /// given instead of a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

fn time<S: Serializer>(time: &Option<SystemTime>, to: S) -> std::result::Result<S::Ok, S::Error> {
    time.map(format_time).serialize(to)
}

/// A job that was enqueued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnqueuedJob {
    /// The id of the job.
    pub id: String,
    /// False if a live job with the key was there.
    pub created: bool,
}

/// The job that a handler runs for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// The idempotency key of what may not happen twice: send it along.
    pub id: String,
    /// Counts the runs from 1.
    pub attempt: u32,
    /// When the job was to run first, in RFC 3339: see [`parse_time`](crate::parse_time).
    pub scheduled_for: String,
}

impl Jobs<'_> {
    /// Enqueues a job in the transaction of the request: it runs if and only if that commits.
    /// Its parameters are checked at once; wrong ones are `invalid`.
    pub fn enqueue(&self, name: &str, params: impl Serialize, options: &JobOptions) -> Outcome<EnqueuedJob> {
        #[derive(Serialize)]
        struct Args<'a, P> {
            name: &'a str,
            params: P,
            #[serde(flatten)]
            options: &'a JobOptions,
        }
        call("jobs.enqueue", Args { name, params, options }).result_on(self.host)
    }

    /// Ends a job of the caller's tenant: it does not run any more, and what a run of it has
    /// written is not committed. False if it has ended before; an unknown id is `not_found`.
    pub fn cancel(&self, id: &str) -> Outcome<bool> {
        #[derive(Deserialize)]
        struct Answer {
            cancelled: bool,
        }
        call("jobs.cancel", json!({ "id": id })).result_on(self.host).map(|answer: Answer| answer.cancelled)
    }
}
