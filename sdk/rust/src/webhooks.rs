//! Webhooks on routes that do not say `verify:` themselves.

use crate::host::Host;
use crate::host_error::Outcome;
use crate::operation::call;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Checks requests on routes that do not say `verify:` themselves.
pub struct Webhooks<'a> {
    pub(crate) host: &'a dyn Host,
}

/// How senders sign what they deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Scheme {
    /// Standard Webhooks
    Standard,
    /// Stripe
    Stripe,
    /// GitHub
    Github,
    /// Slack
    Slack,
}

/// A webhook call that is signed as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The delivery's id; where the scheme has none, the signature.
    pub id: String,
    /// When it was signed, in seconds since 1970; none where the scheme does not say.
    pub timestamp: Option<u64>,
}

impl Webhooks<'_> {
    /// Checks that this request is signed with a declared secret. What is not is
    /// `denied`. It does not remember deliveries, as `verify:` does: one that comes
    /// twice passes twice.
    pub fn verify(&self, scheme: Scheme, secret: &str) -> Outcome<Delivery> {
        call("webhooks.verify", json!({ "scheme": scheme, "secret": secret })).result_on(self.host)
    }
}
