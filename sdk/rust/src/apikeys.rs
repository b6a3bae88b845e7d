//! API keys, with the caller's authority.

use crate::host::Host;
use crate::host_error::Outcome;
use crate::operation::call;
use crate::time::{amount, seconds};
use serde::{Deserialize, Serialize};
use serde_json::{json, Map, Value};
use std::time::Duration;

/// Manages the keys that the caller may issue: those of its tenant whose scope's
/// `@issue` rule lets it. Every other key is `not_found`.
pub struct ApiKeys<'a> {
    pub(crate) host: &'a dyn Host,
}

/// An API key as its managers see it. Times are RFC 3339: see
/// [`parse_time`](crate::parse_time). It is not `Debug`, since it may hold a token.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// The id of the key; it is not a secret.
    pub id: String,
    /// The scope, as the schema names it.
    pub scope: String,
    /// The stable id of that scope.
    pub capability: String,
    /// What it was named.
    #[serde(default)]
    pub name: String,
    /// `active`, `rotating`, `disabled`, `expired` or `revoked`.
    pub status: String,
    /// A piece of the token by which people know it.
    #[serde(default)]
    pub hint: String,
    /// The tenant whose key it is.
    pub tenant: Option<String>,
    /// The user who made it.
    pub owner: Option<String>,
    /// What it carries.
    pub metadata: Option<Map<String, Value>>,
    /// When it was made.
    pub created_at: String,
    /// When it ends by itself.
    pub expires_at: Option<String>,
    /// When it got its last token.
    pub rotated_at: Option<String>,
    /// When the token before that one ends.
    pub previous_token_expires_at: Option<String>,
    /// When it was ended.
    pub revoked_at: Option<String>,
    /// When it was last seen.
    pub last_used_at: Option<String>,
    /// The token, from create and rotate alone, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// Describes a key to be made.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyOptions {
    /// The name of a declared scope.
    pub scope: String,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How long it lives, in whole seconds; without it as the schema says.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
    pub expires_in: Option<Duration>,
    /// At most 16 KiB of what it shall carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// Narrows a list. The default asks for the first 100 keys.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ApiKeyFilter {
    /// Those of one scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// At most so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Those behind the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// One page of a list.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyPage {
    /// The keys, without tokens.
    pub keys: Vec<ApiKey>,
    /// Leads to the next page; none on the last one.
    pub next_cursor: Option<String>,
}

impl ApiKeys<'_> {
    /// Makes a key. The answer holds its token, which nothing shows again.
    pub fn create(&self, options: &ApiKeyOptions) -> Outcome<ApiKey> {
        call("apiKeys.create", options).result_on(self.host)
    }

    /// Gives a key without its token.
    pub fn get(&self, id: &str) -> Outcome<ApiKey> {
        call("apiKeys.get", json!({ "id": id })).result_on(self.host)
    }

    /// Gives one page of keys, without tokens.
    pub fn list(&self, filter: &ApiKeyFilter) -> Outcome<ApiKeyPage> {
        call("apiKeys.list", filter).result_on(self.host)
    }

    /// Gives the key a new token. Older ones live for the grace period, in whole seconds;
    /// with zero they are dead at once.
    pub fn rotate(&self, id: &str, grace_period: Duration) -> Outcome<ApiKey> {
        let args = json!({ "id": id, "gracePeriod": amount(grace_period) });
        call("apiKeys.rotate", args).result_on(self.host)
    }

    /// Ends a key for good. It is idempotent.
    pub fn revoke(&self, id: &str) -> Outcome<ApiKey> {
        call("apiKeys.revoke", json!({ "id": id })).result_on(self.host)
    }
}
