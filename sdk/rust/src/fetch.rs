//! Requests to other services.

use crate::abi::Code;
use crate::context::Context;
use crate::crypto::{data, unbase64, Data};
use crate::host_error::{HostError, Outcome};
use crate::operation::decode;
use crate::time::seconds;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A request to another service, whose origin the schema declares with `outbound`.
///
/// ```
/// # use runner_sdk::*;
/// # fn handler(ctx: &Context, _: &Request) -> Result {
/// let rates = ctx.fetch(&FetchRequest::get("https://rates.example/today"))?;
/// let euro: f64 = rates.json()?;
/// # Ok(ok(euro))
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FetchRequest {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    timeout: Option<Duration>,
    redirect: Option<Redirect>,
    public_only: bool,
}

/// How a redirect is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Redirect {
    /// Follow it, if the schema declares its origin.
    Follow,
    /// Return it as the answer.
    Manual,
    /// Return the error `unavailable`.
    Error,
}

impl FetchRequest {
    /// A request with a method and an absolute URL.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> FetchRequest {
        let (method, url) = (method.into(), url.into());
        FetchRequest { method, url, headers: Vec::new(), body: Vec::new(), timeout: None, redirect: None, public_only: false }
    }

    /// A request with the method GET.
    pub fn get(url: impl Into<String>) -> FetchRequest {
        FetchRequest::new("GET", url)
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> FetchRequest {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> FetchRequest {
        self.body = body.into();
        self
    }

    /// Sets the timeout, 60 s at most; the default is 10 s.
    pub fn timeout(mut self, timeout: Duration) -> FetchRequest {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how a redirect is handled; by default it is followed.
    pub fn redirect(mut self, redirect: Redirect) -> FetchRequest {
        self.redirect = Some(redirect);
        self
    }

    /// Requires a public host that the schema does not list. Call it for URLs that clients send.
    pub fn public_only(mut self) -> FetchRequest {
        self.public_only = true;
        self
    }

    fn args(&self) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Args<'a> {
            method: &'a str,
            url: &'a str,
            #[serde(skip_serializing_if = "<[(String, String)]>::is_empty")]
            headers: &'a [(String, String)],
            #[serde(skip_serializing_if = "Option::is_none")]
            body: Option<Data<'a>>,
            #[serde(skip_serializing_if = "Option::is_none", serialize_with = "seconds")]
            timeout: Option<Duration>,
            #[serde(skip_serializing_if = "Option::is_none")]
            redirect: Option<Redirect>,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            public_only: bool,
        }
        let body = if self.body.is_empty() { None } else { Some(data(&self.body)) };
        let FetchRequest { method, url, headers, timeout, redirect, public_only, .. } = self;
        let args = Args { method, url, headers, body, timeout: *timeout, redirect: *redirect, public_only: *public_only };
        serde_json::to_vec(&args).unwrap_or_default() // texts and numbers are always JSON
    }
}

/// The answer to a request to another service.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FetchResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl FetchResponse {
    /// The first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let same = |pair: &&(String, String)| pair.0.eq_ignore_ascii_case(name);
        self.headers.iter().find(same).map(|pair| pair.1.as_str())
    }

    /// Reads the body as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.body)
    }
}

impl Context<'_> {
    /// Sends a request and returns the answer with any status. The error says why there is
    /// none: `denied` (an origin that is not declared, an address that is not
    /// public, a header that is the runner's), `deadline` (the request's own time),
    /// `unavailable`, `too_large` or `limit`.
    ///
    /// A handler that has fetched is not run again when its transaction conflicts: the
    /// caller gets 409. So write first, and fetch last.
    pub fn fetch(&self, request: &FetchRequest) -> Outcome<FetchResponse> {
        self.host.call("fetch", &request.args()).and_then(|_| self.fetched()).map_err(|why| why.of("fetch"))
    }

    /// Sends requests concurrently, and waits for all. The answers are in
    /// the order of the requests.
    pub fn fetch_all(&self, requests: &[FetchRequest]) -> Vec<Outcome<FetchResponse>> {
        let tickets: Vec<_> = requests.iter().map(|request| self.host.start("fetch", &request.args())).collect();
        let take = |ticket: Outcome<u32>| {
            ticket.and_then(|ticket| self.host.take(ticket)).and_then(|_| self.fetched()).map_err(|why| why.of("fetch"))
        };
        tickets.into_iter().map(take).collect()
    }

    /// Reads the answer that is the last result.
    fn fetched(&self) -> Outcome<FetchResponse> {
        #[derive(Deserialize)]
        struct Answer {
            status: u16,
            headers: Vec<(String, String)>,
            body: Octets,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Octets {
            Text(String),
            Binary { base64: String },
        }
        let Answer { status, headers, body } = decode("fetch", &self.host.result()?)?;
        let body = match body {
            Octets::Text(text) => text.into_bytes(),
            Octets::Binary { base64 } => {
                unbase64(&base64).ok_or_else(|| HostError::new(Code::Internal, "the body of fetch is no base64"))?
            }
        };
        Ok(FetchResponse { status, headers, body })
    }
}
