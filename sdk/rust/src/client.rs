//! The services that a handler reaches through its context.

use crate::apikeys::ApiKeys;
use crate::host::Host;
use crate::jobs::Jobs;
use crate::sessions::Sessions;
use crate::webhooks::Webhooks;

/// Reaches the services of the runner with the caller's authority.
pub struct Client<'a> {
    /// The keys that the caller may issue.
    pub api_keys: ApiKeys<'a>,
    /// The sessions of the app's users.
    pub sessions: Sessions<'a>,
    /// What senders have signed.
    pub webhooks: Webhooks<'a>,
    /// Work for after the commit.
    pub jobs: Jobs<'a>,
}

impl<'a> Client<'a> {
    pub(crate) fn new(host: &'a dyn Host) -> Client<'a> {
        Client {
            api_keys: ApiKeys { host },
            sessions: Sessions { host },
            webhooks: Webhooks { host },
            jobs: Jobs { host },
        }
    }
}
