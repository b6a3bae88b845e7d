//! Sessions of the app's users.

use crate::host::Host;
use crate::host_error::Outcome;
use crate::operation::call;
use crate::time::seconds;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::time::Duration;

/// Opens and ends sessions of the app's users, on routes that say `mints: session`;
/// elsewhere it is `denied`.
pub struct Sessions<'a> {
    pub(crate) host: &'a dyn Host,
}

/// Describes a session to be opened.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionOptions {
    /// The user of the session.
    pub user_id: String,
    /// The tenant that the user belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The user's roles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// How long it lives, in whole seconds; at most the schema's `absolute`, which is
    /// what it is without.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    pub ttl: Option<Duration>,
}

/// A session that was opened. Its cookie goes to the browser; no handler sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The id of the session; it is not a secret.
    pub id: String,
    /// When it ends by itself, in RFC 3339: see [`parse_time`](crate::parse_time).
    pub expires_at: String,
}

impl Sessions<'_> {
    /// Signs a user in: the answer sets the cookie of a new session, when it commits.
    /// The session that the caller had ends.
    pub fn create(&self, options: &SessionOptions) -> Outcome<Session> {
        call("sessions.create", options).result_on(self.host)
    }

    /// Ends a session of the caller's; without an id the one that calls, whose cookie
    /// the answer takes back.
    pub fn revoke(&self, id: Option<&str>) -> Outcome<()> {
        let args: Value = id.map_or_else(|| json!({}), |id| json!({ "id": id }));
        call("sessions.revoke", args).run_on(self.host).map(|_| ())
    }
}
