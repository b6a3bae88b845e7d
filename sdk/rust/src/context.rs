//! The context of a request: the caller, services and the log.

use crate::body_reader::BodyReader;
use crate::client::Client;
use crate::host::{Host, Level};
use crate::host_error::Outcome;
use crate::jobs::Job;
use crate::once::Once;
use crate::operation::{call, Operation};
use crate::time::{parse_time, since_1970};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{json, Map, Value};
use std::fmt::Display;
use std::time::SystemTime;

/// The context of a request: the caller, services and the log.
pub struct Context<'a> {
    /// Reaches the services of the runner with the caller's authority.
    pub client: Client<'a>,
    pub(crate) host: &'a dyn Host,
    facts: Once<Facts>,
}

/// The host's context document.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Facts {
    request_id: String,
    route: String,
    deadline: String,
    auth: Auth,
    job: Option<Job>,
}

/// The caller, as the runner authenticated it. The headers do not contain it. Only the
/// fields that this caller has are set.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Auth {
    /// The kind of the caller.
    pub kind: AuthKind,
    /// The user of a session.
    pub user_id: Option<String>,
    /// The tenant that the caller belongs to.
    pub tenant: Option<String>,
    /// The roles of a session.
    pub roles: Vec<String>,
    /// The id of an API key.
    pub key_id: Option<String>,
    /// The scope of an API key, as the schema names it.
    pub scope: Option<String>,
    /// The stable id of that scope.
    pub capability: Option<String>,
    /// The metadata of an API key.
    pub metadata: Option<Map<String, Value>>,
    /// The claims of the caller's JWT; `None` for other callers.
    pub claims: Option<Map<String, Value>>,
}

/// The kinds of callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum AuthKind {
    /// The route needs no authentication.
    #[default]
    Anonymous,
    /// A user.
    Session,
    /// The holder of an API key.
    ApiKey,
    /// An operator, who runs a function with `runner call`.
    System,
    /// A kind that this SDK does not know.
    #[serde(other)]
    Other,
}

impl<'a> Context<'a> {
    pub(crate) fn new(host: &'a dyn Host) -> Context<'a> {
        Context { client: Client::new(host), host, facts: Once::new() }
    }

    /// The request id, which the answer and the log have too.
    pub fn request_id(&self) -> &str {
        &self.facts().request_id
    }

    /// The template of the matched route: `/v1/orders/:id`.
    pub fn route(&self) -> &str {
        &self.facts().route
    }

    /// Reads the body as it comes. On a route with `stream:` the handler runs before the body has arrived, and
    /// `body:` may be larger than memory. A read waits for the next bytes, and fails if the client is gone,
    /// sends too much or is too slow. If the handler hands the error on, the client gets 400, 413 or 408.
    ///
    /// What was read is gone, so the handler does not run again: if another request has changed what it has
    /// read from the store, the client gets 409. The members of [`Request`](crate::Request) that read the body must
    /// not be called after the first part. All readers of a request read on where the last one has ended.
    pub fn body_reader(&self) -> BodyReader<'a> {
        BodyReader(self.host)
    }

    /// When the request's time is over.
    pub fn deadline(&self) -> SystemTime {
        parse_time(&self.facts().deadline).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// The job that the handler runs for; none for a request.
    pub fn job(&self) -> Option<&Job> {
        self.facts().job.as_ref()
    }

    /// The caller.
    pub fn auth(&self) -> &Auth {
        &self.facts().auth
    }

    /// The value of a secret that the schema declares.
    pub fn secret(&self, name: &str) -> Outcome<String> {
        #[derive(Serialize)]
        struct Args<'a> {
            name: &'a str,
        }
        #[derive(Deserialize)]
        struct Found {
            value: String,
        }
        call("secret", Args { name }).result(self).map(|found: Found| found.value)
    }

    /// The value of a variable that the schema declares: a `String` for a string, a url, a
    /// decimal or a rate, a number for an int, a `bool`, and a number of seconds for a duration.
    pub fn var<T: DeserializeOwned>(&self, name: &str) -> Outcome<T> {
        #[derive(Deserialize)]
        struct Found<T> {
            value: T,
        }
        call("var", json!({ "name": name })).result(self).map(|found: Found<T>| found.value)
    }

    /// Commits the writes of this request with any status. By default they are discarded
    /// with a status of 400 or above.
    pub fn keep_writes(&self) {
        self.host.keep_writes();
    }

    /// Writes to the server's log, with the request's id. The number and the size of lines
    /// per request are limited.
    pub fn log(&self, level: Level, text: impl Display) {
        self.host.log(level, &text.to_string());
    }

    /// [`Context::log`] with [`Level::Debug`].
    pub fn debug(&self, text: impl Display) {
        self.log(Level::Debug, text);
    }

    /// [`Context::log`] with [`Level::Info`].
    pub fn info(&self, text: impl Display) {
        self.log(Level::Info, text);
    }

    /// [`Context::log`] with [`Level::Warn`].
    pub fn warn(&self, text: impl Display) {
        self.log(Level::Warn, text);
    }

    /// [`Context::log`] with [`Level::Error`].
    pub fn error(&self, text: impl Display) {
        self.log(Level::Error, text);
    }

    /// The time. (`SystemTime::now` panics on this target.)
    pub fn now(&self) -> SystemTime {
        since_1970(self.host.now())
    }

    /// Fills a buffer with random bytes that cannot be predicted.
    pub fn random(&self, into: &mut [u8]) {
        self.host.random(into);
    }

    fn facts(&self) -> &Facts {
        self.facts.get(|| match serde_json::from_slice(&self.host.context()) {
            Ok(facts) => facts,
            Err(why) => panic!("read the request's context: {}", why),
        })
    }
}

// Here and not in operation.rs, because Context itself runs operations.
impl Operation {
    /// Runs it and reads the result.
    pub fn result<T: DeserializeOwned>(&self, ctx: &Context) -> Outcome<T> {
        self.result_on(ctx.host)
    }

    /// Runs it without reading the result.
    pub fn run(&self, ctx: &Context) -> Outcome<()> {
        self.run_on(ctx.host).map(|_| ())
    }
}
