//! What can go wrong, and how it becomes an answer.

use crate::response::Response;
use std::error::Error as StdError;
use std::fmt;

/// What a handler returns.
pub type Result<T = Response, E = Error> = std::result::Result<T, E>;

/// Says why a body could not be read as JSON.
#[derive(Debug)]
pub struct BodyError(pub(crate) serde_json::Error);

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read the JSON body: {}", self.0)
    }
}

impl StdError for BodyError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.0)
    }
}

/// What ends a handler early: an answer, or any error of Rust's kind. Both come by `?`.
///
/// A [`HostError`](crate::HostError) of rows, keys, sessions or webhooks in it answers its own status
/// (`not_found` 404, `denied` 403, `conflict` 409, `unavailable` 503), a [`BodyError`] 400
/// `invalid_json`; anything else 500 `handler_failed`, with the text in the server's log
/// alone.
///
/// ```
/// # use runner_sdk::*;
/// fn page(_: &Context, req: &Request) -> Result {
///     let page = req.query("page").ok_or_else(|| bad_request("which page?"))?;
///     let page: u32 = page.parse().map_err(|_| bad_request("page is a number"))?;
///     if page > 100 {
///         return Err(Error::new("there are no such pages"));
///     }
///     Ok(ok(page))
/// }
/// ```
#[derive(Debug)]
pub struct Error(pub(crate) Reason);

#[derive(Debug)]
pub(crate) enum Reason {
    Answer(Response),
    Failure(Box<dyn StdError>),
}

impl Error {
    /// An error of a text.
    pub fn new(text: impl Into<String>) -> Error {
        Error(Reason::Failure(text.into().into()))
    }
}

impl From<Response> for Error {
    fn from(answer: Response) -> Error {
        Error(Reason::Answer(answer))
    }
}

impl<E: StdError + 'static> From<E> for Error {
    fn from(error: E) -> Error {
        Error(Reason::Failure(Box::new(error)))
    }
}
