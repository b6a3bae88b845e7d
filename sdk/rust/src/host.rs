//! The guest ABI in Rust's types. There are three hosts: the imports of a module, the fake
//! of tests, and the one of warm-up runs.

use crate::abi::Code;
use crate::host_error::{HostError, Outcome};
use std::time::Duration;

/// The levels of log lines, as numbered by the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For debugging.
    Debug = 0,
    /// Normal events.
    Info = 1,
    /// What an operator should look at.
    Warn = 2,
    /// Errors.
    Error = 3,
    /// A report of why the handler fails: lines with the kind, the message and the frames.
    #[doc(hidden)]
    Failure = 4,
}

/// Names a family of request values, as numbered by the ABI.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Param = 0,
    Query = 1,
    Header = 2,
    /// One pair without a name: the query as received.
    RawQuery = 3,
}

/// The part that `send_result` sends, as numbered by the ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    All = 0,
    Rows = 1,
    Row = 2,
}

pub(crate) type Done = std::result::Result<(), HostError>;

/// What a handler can ask of the runner.
pub(crate) trait Host {
    fn method(&self) -> String;
    fn path(&self) -> String;
    fn value(&self, kind: Kind, name: &str) -> Option<String>;
    fn pairs(&self, kind: Kind) -> Vec<(String, String)>;
    fn body(&self) -> Vec<u8>;
    /// Reads the next bytes of the body, for which it waits. 0 is its end.
    fn read(&self, into: &mut [u8]) -> std::result::Result<usize, HostError>;
    /// The request's context as JSON.
    fn context(&self) -> Vec<u8>;
    fn set_header(&self, name: &str, value: &str) -> Done;
    fn send(&self, status: u16, body: &[u8]) -> Done;
    /// Answers with an error, or breaks off the answer that has begun.
    fn send_error(&self, status: u16, code: &str, message: &str) -> Done;
    /// Answers with a part of the last operation's result, without reading it.
    fn send_result(&self, status: u16, part: Part) -> Done;
    /// Runs one service operation: JSON in.
    fn call(&self, op: &str, args: &[u8]) -> Done;
    /// Starts one, and returns its ticket.
    fn start(&self, op: &str, args: &[u8]) -> std::result::Result<u32, HostError>;
    /// Waits for one that was started; `result` is then its result.
    fn take(&self, ticket: u32) -> Done;
    /// The JSON result of the last call, if it did not fail.
    fn result(&self) -> Outcome<Vec<u8>>;
    /// Begins an answer in parts, which `write` sends. Its error is `Unavailable` if the client is gone.
    fn begin(&self, status: u16) -> Done;
    fn write(&self, part: &[u8]) -> Done;
    fn keep_writes(&self);
    fn log(&self, level: Level, text: &str);
    fn random(&self, into: &mut [u8]);
    /// The time since 1970.
    fn now(&self) -> Duration;
}

/// A host with an empty request of which only the body is given, and without services.
pub(crate) struct Blank(pub(crate) &'static str);

impl Host for Blank {
    fn method(&self) -> String {
        "GET".into()
    }
    fn path(&self) -> String {
        "/".into()
    }
    fn value(&self, _: Kind, _: &str) -> Option<String> {
        None
    }
    fn pairs(&self, _: Kind) -> Vec<(String, String)> {
        Vec::new()
    }
    fn body(&self) -> Vec<u8> {
        self.0.into()
    }
    /// The body is at its end: `body` has it.
    fn read(&self, _: &mut [u8]) -> std::result::Result<usize, HostError> {
        Ok(0)
    }
    fn context(&self) -> Vec<u8> {
        br#"{"requestId":"","route":"","deadline":"1970-01-01T00:00:00.000Z","auth":{"kind":"anonymous"}}"#.to_vec()
    }
    fn set_header(&self, _: &str, _: &str) -> Done {
        Ok(())
    }
    fn send(&self, _: u16, _: &[u8]) -> Done {
        Ok(())
    }
    fn send_error(&self, _: u16, _: &str, _: &str) -> Done {
        Ok(())
    }
    fn send_result(&self, _: u16, _: Part) -> Done {
        Ok(())
    }
    fn call(&self, _: &str, _: &[u8]) -> Done {
        Err(HostError::new(Code::Unavailable, ""))
    }
    fn start(&self, _: &str, _: &[u8]) -> std::result::Result<u32, HostError> {
        Err(HostError::new(Code::Unavailable, ""))
    }
    fn take(&self, _: u32) -> Done {
        Err(HostError::new(Code::Unavailable, ""))
    }
    fn result(&self) -> Outcome<Vec<u8>> {
        Ok(Vec::new())
    }
    fn begin(&self, _: u16) -> Done {
        Ok(())
    }
    /// The client is gone, so that a handler ends that would write for ever.
    fn write(&self, _: &[u8]) -> Done {
        Err(HostError::new(Code::Unavailable, ""))
    }
    fn keep_writes(&self) {}
    fn log(&self, _: Level, _: &str) {}
    fn random(&self, into: &mut [u8]) {
        into.fill(0);
    }
    fn now(&self) -> Duration {
        Duration::from_secs(0)
    }
}
