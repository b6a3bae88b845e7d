//! Sessions of the app's users.

use crate::host::Host;
use crate::host_error::Outcome;
use crate::operation::call;
use crate::time::seconds;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// Opens, lists and ends sessions of the app's users. A user reaches its own sessions in its
/// tenant. A caller for whom `@manage` in the schema's `session cookie` is true reaches those of
/// its tenant. A route with `mints: session` reaches those of every user that it names.
pub struct Sessions<'a> {
    pub(crate) host: &'a dyn Host,
}

/// Lists and ends the sessions of one user: see [`Sessions::of`].
pub struct UserSessions<'a> {
    host: &'a dyn Host,
    user: String,
}

/// Stands for the id of the session that calls.
pub const CURRENT_SESSION: &str = "current";

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

/// A session that has not ended. Times are RFC 3339: see
/// [`parse_time`](crate::parse_time).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveSession {
    /// The id of the session; it is not a secret.
    pub id: String,
    /// The user of the session.
    pub user_id: String,
    /// The tenant that the user belongs to.
    pub tenant: Option<String>,
    /// The roles that it was opened with.
    pub roles: Vec<String>,
    /// When it was opened.
    pub created_at: String,
    /// When it was last used.
    pub last_seen_at: String,
    /// When it ends by itself.
    pub expires_at: String,
    /// Whether it is the session of this request.
    pub current: bool,
}

/// Says which sessions to list. The default asks for all.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFilter {
    /// The tenant of the user; without it that of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Those of the user in every tenant.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all_tenants: bool,
    /// The size of one page; without it all sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Those behind the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A list of sessions, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionPage {
    /// The sessions, without cookies.
    pub sessions: Vec<LiveSession>,
    /// Leads to the next page; none unless a limit cut the list.
    pub next_cursor: Option<String>,
}

/// Says which sessions to end. The default ends all.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RevokeOptions {
    /// The tenant of the user; without it that of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Those of the user in every tenant.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all_tenants: bool,
    /// The id of a session that remains, or [`CURRENT_SESSION`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub except: Option<String>,
}

/// How many sessions `list` asks for at once.
const PER_PAGE: u32 = 1000;

/// The arguments of an operation on the sessions of a user; without one the caller's.
#[derive(Serialize)]
struct Whose<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(flatten)]
    options: &'a T,
}

fn list(host: &dyn Host, user: Option<&str>, filter: &SessionFilter) -> Outcome<SessionPage> {
    let page = |options: &SessionFilter| call("sessions.list", Whose { user, options }).result_on::<SessionPage>(host);
    if filter.limit.is_some() {
        return page(filter);
    }
    let mut filter = SessionFilter { limit: Some(PER_PAGE), ..filter.clone() };
    let mut all = page(&filter)?;
    while all.next_cursor.is_some() {
        filter.cursor = all.next_cursor;
        let next = page(&filter)?;
        all.sessions.extend(next.sessions);
        all.next_cursor = next.next_cursor;
    }
    Ok(all)
}

fn revoke_all(host: &dyn Host, user: Option<&str>, options: &RevokeOptions) -> Outcome<u64> {
    #[derive(Deserialize)]
    struct Ended {
        count: u64,
    }
    let ended: Ended = call("sessions.revokeAll", Whose { user, options }).result_on(host)?;
    Ok(ended.count)
}

impl UserSessions<'_> {
    /// Gives the live sessions of the user, without cookies.
    pub fn list(&self, filter: &SessionFilter) -> Outcome<SessionPage> {
        list(self.host, Some(&self.user), filter)
    }

    /// Ends all sessions of the user, and gives their number. If the session that calls is one
    /// of them, the answer takes its cookie back.
    pub fn revoke_all(&self, options: &RevokeOptions) -> Outcome<u64> {
        revoke_all(self.host, Some(&self.user), options)
    }
}

impl<'a> Sessions<'a> {
    /// Signs a user in, on a route that says `mints: session`; elsewhere it is `denied`.
    /// The answer sets the cookie of a new session, when it commits. The session that the
    /// caller had ends.
    pub fn create(&self, options: &SessionOptions) -> Outcome<Session> {
        call("sessions.create", options).result_on(self.host)
    }

    /// Selects the sessions of a user, for `list` and `revoke_all`. An empty user is an error
    /// with the code `invalid`, and never the caller.
    pub fn of(&self, user: impl Into<String>) -> UserSessions<'a> {
        UserSessions { host: self.host, user: user.into() }
    }

    /// Gives the live sessions of the caller, without cookies.
    pub fn list(&self, filter: &SessionFilter) -> Outcome<SessionPage> {
        list(self.host, None, filter)
    }

    /// Ends all sessions of the caller, and returns their number. If the session that calls is one
    /// of them, the answer takes its cookie back.
    pub fn revoke_all(&self, options: &RevokeOptions) -> Outcome<u64> {
        revoke_all(self.host, None, options)
    }

    /// Ends a session. [`CURRENT_SESSION`] is the session of this request, whose cookie the answer takes
    /// back. An empty id is an error with the code `invalid`.
    pub fn revoke(&self, id: &str) -> Outcome<()> {
        let args = if id == CURRENT_SESSION { json!({}) } else { json!({ "id": id }) };
        call("sessions.revoke", args).run_on(self.host).map(|_| ())
    }
}
