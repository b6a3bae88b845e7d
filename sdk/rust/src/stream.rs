//! Answers in parts, sent while the handler runs.

use crate::abi::Code;
use crate::context::Context;
use crate::error::{Reason, Result};
use crate::host::Host;
use crate::response::{Content, Parts, Response, WriteParts};
use crate::serve::send;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

/// The closure that writes an answer.
struct Closure<F>(F);

impl<F> fmt::Debug for Closure<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closure")
    }
}

impl<F: FnOnce(&Context, &mut Writer) -> Result<()>> WriteParts for Closure<F> {
    fn write(self: Box<Self>, host: &dyn Host) -> std::result::Result<(), Box<dyn StdError>> {
        match (self.0)(&Context::new(host), &mut Writer(host)) {
            Ok(()) => Ok(()),
            Err(error) => match error.0 {
                Reason::Failure(why) if is_gone(&*why) => Ok(()),
                Reason::Failure(why) => Err(why),
                Reason::Answer(answer) => send(host, answer), // an error breaks the answer off
            },
        }
    }
}

/// Answers 200 in parts, which are sent while the closure runs:
///
/// ```
/// # use runner_sdk::*;
/// use std::io::Write;
///
/// fn report(_: &Context, _: &Request) -> Result {
///     let answer = stream(|ctx, out| {
///         writeln!(out, "id,item")?;
///         for order in query("Order").limit(1000).all::<serde_json::Value>(ctx)? {
///             writeln!(out, "{},{}", order["id"], order["item"])?;
///         }
///         Ok(())
///     });
///     Ok(answer.with_header("content-type", "text/csv"))
/// }
/// ```
///
/// The transaction of the request commits before the closure runs. If it conflicts, the handler
/// runs again and the closure does not run. In the closure each operation is a transaction of its
/// own. If the closure returns an error, the answer is broken off, and the client can see that: it
/// gets no end of the body, and of events one of type `error` before, with the code.
pub fn stream(write: impl FnOnce(&Context, &mut Writer) -> Result<()> + 'static) -> Response {
    stream_with(200, write)
}

/// [`stream`] with a status.
pub fn stream_with(status: u16, write: impl FnOnce(&Context, &mut Writer) -> Result<()> + 'static) -> Response {
    Response { status, content: Content::Parts(Parts(Box::new(Closure(write)))), headers: Vec::new() }
}

/// Answers with server-sent events, which the closure sends with [`Writer::event`]. See [`stream`].
///
/// ```
/// # use runner_sdk::*;
/// handler!(ticks, |_, req| {
///     let last: u64 = req.header("last-event-id").and_then(|id| id.parse().ok()).unwrap_or(0);
///     Ok(events(move |_, out| {
///         for n in last + 1..=10 {
///             out.event(Event::new(n).event("tick").id(n))?;
///         }
///         Ok(())
///     }))
/// });
/// ```
pub fn events(write: impl FnOnce(&Context, &mut Writer) -> Result<()> + 'static) -> Response {
    stream(write).with_header("content-type", "text/event-stream")
}

/// Sends the parts of an answer. Each write is sent at once, and waits for a slow client. Its error
/// has the kind [`io::ErrorKind::BrokenPipe`] if the client takes no more. The closure then has about
/// a second to end. It may return that error, which is not a failure.
pub struct Writer<'a>(&'a dyn Host);

impl Writer<'_> {
    /// Sends a server-sent event.
    ///
    /// # Errors
    ///
    /// When its type or its id has a line end or a zero byte, and those of a write.
    pub fn event(&mut self, event: Event) -> io::Result<()> {
        let refused = ['\r', '\n', '\0'];
        if event.event.contains(refused) || event.id.contains(refused) {
            let why = format!(
                "the event {:?} with the id {:?}: neither may have a line end or a zero byte",
                event.event, event.id
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        io::Write::write_all(self, event.text().as_bytes())
    }
}

impl io::Write for Writer<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        match self.0.write(part) {
            Ok(()) => Ok(part.len()),
            Err(why) if why.code == Code::Unavailable => Err(io::Error::new(io::ErrorKind::BrokenPipe, ClientGone)),
            Err(why) => Err(io::Error::new(io::ErrorKind::Other, why)),
        }
    }

    /// Does nothing: parts are sent at once.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Sends the text as one part.
    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        self.write_all(text.to_string().as_bytes())
    }
}

/// What is in the error of a write to a client that is gone.
#[derive(Debug)]
struct ClientGone;

impl fmt::Display for ClientGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client is gone")
    }
}

impl StdError for ClientGone {}

/// Whether an error is one of a write to a client that is gone.
fn is_gone(mut why: &(dyn StdError + 'static)) -> bool {
    loop {
        if let Some(error) = why.downcast_ref::<io::Error>() {
            if error.get_ref().map_or(false, |inner| inner.is::<ClientGone>()) {
                return true;
            }
        }
        match why.source() {
            Some(source) => why = source,
            None => return false,
        }
    }
}

/// A server-sent event. What is not set is left out.
#[derive(Clone, Debug, Default)]
pub struct Event {
    event: String,
    id: String,
    retry: Option<Duration>,
    data: String,
}

impl Event {
    /// An event with data, which may have several lines.
    pub fn new(data: impl fmt::Display) -> Event {
        Event { data: data.to_string(), ..Event::default() }
    }

    /// Sets the type. Browsers call an event without one `message`.
    pub fn event(self, event: impl Into<String>) -> Event {
        Event { event: event.into(), ..self }
    }

    /// Sets what the client sends in the header `last-event-id` when it connects again.
    pub fn id(self, id: impl fmt::Display) -> Event {
        Event { id: id.to_string(), ..self }
    }

    /// Sets how long the client waits before it connects again.
    pub fn retry(self, after: Duration) -> Event {
        Event { retry: Some(after), ..self }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut field = |name: &str, value: &str| text.extend([name, ": ", value, "\n"]);
        if !self.event.is_empty() {
            field("event", &self.event);
        }
        if !self.id.is_empty() {
            field("id", &self.id);
        }
        if let Some(after) = self.retry {
            field("retry", &after.as_millis().to_string());
        }
        if !self.data.is_empty() || !self.event.is_empty() {
            // Else the client would see an empty message.
            for line in self.data.replace("\r\n", "\n").split(['\r', '\n']) {
                field("data", line);
            }
        }
        text.push('\n');
        text
    }
}
