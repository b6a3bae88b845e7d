//! Runs a handler and sends its answer.

use crate::abi::Code;
use crate::context::Context;
use crate::error::{BodyError, Reason, Result};
use crate::host::{Blank, Done, Host, Level, Part};
use crate::host_error::HostError;
use crate::request::Request;
use crate::response::{Content, Response};
use std::error::Error as StdError;

/// Answers one request.
pub type Handler = fn(&Context, &Request) -> Result;

/// Runs the handler for the current request: the body of every export.
#[cfg(target_arch = "wasm32")]
pub fn handle(_: &'static str, handler: Handler) {
    use crate::guest::Guest;
    std::panic::set_hook(Box::new(move |info| {
        let text = match (info.payload().downcast_ref::<&str>(), info.payload().downcast_ref::<String>()) {
            (Some(text), _) => text,
            (_, Some(text)) => text.as_str(),
            _ => "a panic",
        };
        let place = info.location().map(|place| format!("\n    at {}", place)).unwrap_or_default();
        Guest.log(Level::Failure, &format!("panic\n{}{}", text, place));
    }));
    serve(&Guest, handler);
    flush();
}

/// Writes the last line of `print!` to the log if it has no line break.
#[cfg(target_arch = "wasm32")]
fn flush() {
    #[cfg(target_os = "wasi")]
    let _ = std::io::Write::flush(&mut std::io::stdout());
}

/// Allocates the buffer of standard output before the first request.
#[cfg(target_os = "wasi")]
#[export_name = "runner_prepare"]
extern "C" fn prepare() {
    flush();
}

/// Outside of the runner there is no request.
#[cfg(not(target_arch = "wasm32"))]
pub fn handle(name: &'static str, _: Handler) {
    panic!("{} works inside the runner only: test its handler with runner_sdk::testing", name);
}

/// Runs a handler for an empty request and drops its answer.
pub fn warm(handler: Handler, body: &'static str) {
    serve(&Blank(body), handler);
}

/// Runs the handler on a host and sends its answer.
pub(crate) fn serve(host: &dyn Host, handler: Handler) {
    let outcome = handler(&Context::new(host), &Request::new(host)).or_else(|error| match error.0 {
        Reason::Answer(answer) => Ok(answer),
        Reason::Failure(why) => Err(why),
    });
    if let Err(why) = outcome.and_then(|response| send(host, response)) {
        fail(host, &*why);
    }
}

/// Sends an answer, or returns why it could not be sent.
pub(crate) fn send(host: &dyn Host, response: Response) -> std::result::Result<(), Box<dyn StdError>> {
    let status = response.status;
    // Before the headers, so that a failed operation leaves none.
    let part = match &response.content {
        Content::Operation(operation) => operation.run_on(host)?,
        _ => Part::All,
    };
    for (name, value) in &response.headers {
        accepted(host.set_header(name, value), || format!("set header {:?}", name))?;
    }
    match response.content {
        Content::Message(text) => {
            accepted(host.send_error(status, "", &text), || format!("answer with an error of status {}", status))
        }
        Content::Problem { code, message, members } => {
            let args = serde_json::json!({ "status": status, "code": code, "detail": message, "members": members });
            accepted(host.call("problem", args.to_string().as_bytes()), || format!("answer with an error of status {}", status))
        }
        Content::Bytes(bytes) => {
            accepted(host.send(status, &bytes), || format!("answer with status {} and {} bytes", status, bytes.len()))
        }
        Content::Operation(_) => match host.send_result(status, part) {
            // A query without a row fails as `get` does.
            Err(none) if part == Part::Row && none.code == Code::NotFound => Err(none.into()),
            sent => accepted(sent, || format!("answer with status {} and the last result", status)),
        },
        Content::Parts(parts) => {
            accepted(host.begin(status), || format!("begin an answer with status {}", status))?;
            parts.0.write(host)
        }
        Content::File(mut args) => {
            args.insert("status".into(), status.into());
            let args = serde_json::Value::Object(args).to_string();
            accepted(host.call("file.send", args.as_bytes()), || "answer with a file".to_string())
        }
        Content::Unwritable(why) => Err(format!("write the answer's body as JSON: {}", why).into()),
    }
}

/// A refused answer is an error of the handler, so it becomes a text without a code.
fn accepted(done: Done, act: impl FnOnce() -> String) -> std::result::Result<(), Box<dyn StdError>> {
    done.map_err(|why| format!("{}: {}", act(), why).into())
}

/// Answers for a handler that failed. If an answer was sent before, the host refuses this
/// one.
fn fail(host: &dyn Host, why: &(dyn StdError + 'static)) {
    let mut cause = Some(why);
    let mut text = String::new();
    while let Some(error) = cause {
        if error.is::<BodyError>() {
            let _ = host.send_error(400, "invalid_json", &error.to_string());
            return;
        }
        if let Some(HostError { code, message, inner, .. }) = error.downcast_ref() {
            let known = match code {
                _ if *inner => None,
                Code::NotFound => Some((404, "not_found")),
                Code::Denied => Some((403, "forbidden")),
                Code::Conflict => Some((409, "conflict")),
                Code::Unavailable => Some((503, "unavailable")),
                _ => None,
            };
            if let Some((status, code)) = known {
                let _ = host.send_error(status, code, message);
                return;
            }
        }
        let message = error.to_string();
        if text.is_empty() {
            text = message;
        } else if !text.contains(&message) {
            text = format!("{}: {}", text, message);
        }
        cause = error.source();
    }
    host.log(Level::Failure, &format!("error\n{}", text));
    let _ = host.send_error(500, "handler_failed", "");
}
