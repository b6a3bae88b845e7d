//! API keys, with the caller's authority.

use crate::host::Host;
use crate::host_error::Outcome;
use crate::operation::call;
use crate::time::{amount, seconds};
use serde::{Deserialize, Serialize};
use serde_json::{json, Map, Value};
use std::time::Duration;

/// Manages the keys that the caller reaches: those that it created, as a user or as a key. A key
/// also reaches itself. Where `@manage` in the schema is true, the caller reaches all keys of the
/// scope in its tenant. Every other key is `not_found`.
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
    /// The id of the user or the key that created it; none for a key of an operator.
    pub owner: Option<String>,
    /// `user` or `key`: what `owner` is the id of.
    #[serde(default)]
    pub owner_kind: Option<String>,
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

/// Narrows a list. The default asks for all keys.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ApiKeyFilter {
    /// Those of one scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// At most so many, 1 to 1000.
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

    /// Returns keys without tokens: one page of at most `limit` keys, or without a limit all, as
    /// one page that is the last.
    pub fn list(&self, filter: &ApiKeyFilter) -> Outcome<ApiKeyPage> {
        if filter.limit.is_some() {
            return call("apiKeys.list", filter).result_on(self.host);
        }
        let mut filter = ApiKeyFilter { limit: Some(1000), ..filter.clone() };
        let mut keys = Vec::new();
        loop {
            let page: ApiKeyPage = call("apiKeys.list", &filter).result_on(self.host)?;
            keys.extend(page.keys);
            if page.next_cursor.is_none() {
                return Ok(ApiKeyPage { keys, next_cursor: None });
            }
            filter.cursor = page.next_cursor;
        }
    }

    /// Gives the key, of a scope that the caller may issue, a new token. Each older one ends
    /// after the grace period, in whole seconds, or at its own end if that is sooner; with zero
    /// all end at once. With a grace period a key has at most 5 live tokens: a rotation beyond
    /// that is a conflict.
    pub fn rotate(&self, id: &str, grace_period: Duration) -> Outcome<ApiKey> {
        let args = json!({ "id": id, "gracePeriod": amount(grace_period) });
        call("apiKeys.rotate", args).result_on(self.host)
    }

    /// Ends a key for good. It is idempotent.
    pub fn revoke(&self, id: &str) -> Outcome<ApiKey> {
        call("apiKeys.revoke", json!({ "id": id })).result_on(self.host)
    }
}
