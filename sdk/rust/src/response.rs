//! Answers, made by nine helpers.

use crate::host::Host;
use crate::operation::Operation;
use serde::Serialize;
use std::error::Error as StdError;
use std::fmt;

/// A handler's answer, made by one of the helpers.
#[derive(Debug)]
pub struct Response {
    pub(crate) status: u16,
    pub(crate) content: Content,
    pub(crate) headers: Vec<(String, String)>,
}

/// The content of an answer.
#[derive(Debug)]
#[doc(hidden)]
pub enum Content {
    Bytes(Vec<u8>),
    /// Its result, which the runner sends directly.
    Operation(Operation),
    /// The message of a failure.
    Message(String),
    /// A failure with a code or members of the handler's own.
    Problem { code: String, message: String, members: serde_json::Map<String, serde_json::Value> },
    /// What writes it in parts.
    Parts(Parts),
    /// The arguments of `file.send` except the status.
    File(serde_json::Map<String, serde_json::Value>),
    /// Why the body cannot be written as JSON.
    Unwritable(serde_json::Error),
}

/// What writes an answer in parts.
#[derive(Debug)]
#[doc(hidden)]
pub struct Parts(pub(crate) Box<dyn WriteParts>);

/// Writes an answer in parts, which has begun.
pub(crate) trait WriteParts: fmt::Debug {
    fn write(self: Box<Self>, host: &dyn Host) -> Result<(), Box<dyn StdError>>;
}

/// What can be the body of an answer: a value that serde writes, which goes out as
/// JSON, [`Raw`] bytes, or an operation that was not run. That one the runner runs, and
/// sends its result without handing it to the handler, which is fastest:
/// `ok(query("Order").limit(20))`.
pub trait Body {
    #[doc(hidden)]
    fn content(self) -> Content;
}

impl<T: Serialize> Body for T {
    fn content(self) -> Content {
        match serde_json::to_vec(&self) {
            Ok(bytes) => Content::Bytes(bytes),
            Err(why) => Content::Unwritable(why),
        }
    }
}

impl Body for Operation {
    fn content(self) -> Content {
        Content::Operation(self)
    }
}

/// Bytes that go out as they are. Without the header `content-type` they are said to
/// be JSON.
#[derive(Clone, Debug)]
pub struct Raw<B>(pub B);

impl<B: Into<Vec<u8>>> Body for Raw<B> {
    fn content(self) -> Content {
        Content::Bytes(self.0.into())
    }
}

impl Response {
    fn new(status: u16, content: Content) -> Response {
        Response { status, content, headers: Vec::new() }
    }

    pub(crate) fn of_file(status: u16, args: serde_json::Map<String, serde_json::Value>) -> Response {
        Response::new(status, Content::File(args))
    }

    /// The HTTP status of the answer.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The answer with one more header line. A header that the runner does not let pass
    /// (its own, such as Date, a name or value that would break the message, a second
    /// Content-Type or Location) makes the answer 500 `handler_failed`, and the log says
    /// which.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Response {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The answer with the Location of what it is about: a path (`/x`) or an absolute
    /// http(s) URL. An empty one is none.
    pub fn with_location(self, location: impl Into<String>) -> Response {
        let location = location.into();
        if location.is_empty() {
            return self;
        }
        self.with_header("location", location)
    }
}

/// The parts of a failure that a handler adds.
impl Response {
    /// Sets the stable code of a failure, in snake_case.
    pub fn with_code(self, code: impl Into<String>) -> Response {
        let given = code.into();
        self.as_problem(|code, _| {
            *code = given;
            None
        })
    }

    /// Adds a member (RFC 9457) to a failure:
    /// `error(402, "buy more").with_code("no_credit").with_member("balance", 3)`.
    ///
    /// The runner writes `type`, `title`, `status`, `detail`, `instance`, `code` and `requestId`: with
    /// such a name the answer is 500 `handler_failed`. `errors` must be a list of objects with `field`
    /// and `message`.
    pub fn with_member(self, name: impl Into<String>, value: impl Serialize) -> Response {
        let name = name.into();
        self.as_problem(|_, members| match serde_json::to_value(value) {
            Ok(value) => members.insert(name, value).and(None),
            Err(why) => Some(why),
        })
    }

    /// An answer that is not a failure is unchanged.
    fn as_problem(
        mut self,
        change: impl FnOnce(&mut String, &mut serde_json::Map<String, serde_json::Value>) -> Option<serde_json::Error>,
    ) -> Response {
        if let Content::Message(text) = &mut self.content {
            let message = std::mem::take(text);
            self.content = Content::Problem { code: String::new(), message, members: serde_json::Map::new() };
        }
        if let Content::Problem { code, members, .. } = &mut self.content {
            if let Some(why) = change(code, members) {
                self.content = Content::Unwritable(why);
            }
        }
        self
    }
}

/// Answers 200 with a body; `ok(())` is `null`.
pub fn ok(body: impl Body) -> Response {
    Response::new(200, body.content())
}

/// Answers 201 with a body; see [`Response::with_location`].
pub fn created(body: impl Body) -> Response {
    Response::new(201, body.content())
}

/// Answers 204.
pub fn no_content() -> Response {
    Response::new(204, Content::Bytes(Vec::new()))
}

/// Answers 302. The location is a URI reference: `/x`, `orders`, `?page=2` or a URL.
pub fn redirect(location: impl Into<String>) -> Response {
    redirect_with(302, location)
}

/// Answers a redirect with a status: 301, 302, 303, 307 or 308.
///
/// # Panics
///
/// When the status is another.
pub fn redirect_with(status: u16, location: impl Into<String>) -> Response {
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        panic!("{} is not a redirect: use 301, 302, 303, 307 or 308", status);
    }
    Response::new(status, Content::Bytes(Vec::new())).with_header("location", location)
}

/// Answers 400: the caller sent something invalid.
pub fn bad_request(message: impl Into<String>) -> Response {
    error(400, message)
}

/// Answers 401: the caller is not authenticated.
pub fn unauthorized(message: impl Into<String>) -> Response {
    error(401, message)
}

/// Answers 403: the caller may not do this.
pub fn forbidden(message: impl Into<String>) -> Response {
    error(403, message)
}

/// Answers 404.
pub fn not_found(message: impl Into<String>) -> Response {
    error(404, message)
}

/// Answers any other failure, 400 to 599. A status outside of that is the handler's
/// fault and answers 500. The message is the problem's `detail`; when it is empty the
/// runner writes one.
pub fn error(status: u16, message: impl Into<String>) -> Response {
    Response::new(status, Content::Message(message.into()))
}
