//! Runs handlers in a native test, without a runner.
//!
//! ```
//! # use runner_sdk::*;
//! # fn create_order(_: &Context, req: &Request) -> Result {
//! #     let body: serde_json::Value = req.body()?;
//! #     Ok(created(insert("Order", body)))
//! # }
//! use runner_sdk::testing::Test;
//! use serde_json::json;
//!
//! let answer = Test::new("POST", "/v1/orders")
//!     .body(r#"{"item":"tea"}"#)
//!     .on("insert", |_| Ok(json!({"rows": [{"id": "1", "item": "tea"}]})))
//!     .run(create_order);
//! assert_eq!((answer.status, answer.text()), (201, r#"{"id":"1","item":"tea"}"#));
//! assert_eq!(answer.calls[0].1, json!({"into": "Order", "values": {"item": "tea"}}));
//! ```
//!
//! It answers as the runner does for what a handler can see of it: bodies, helpers,
//! errors, and the refusal of headers and statuses that the runner does not let pass,
//! which is 500 `handler_failed` with the reason in [`Answer::logs`]. Services answer
//! what the test says; checks that belong to the host, such as authority, are the
//! business of a test that runs the real server. A panic of the handler is one of the
//! test.

use crate::abi::Code;
use crate::context::Auth;
use crate::host::{Done, Host, Kind, Level, Part};
use crate::host_error::{HostError, Outcome};
use crate::serve::{serve, Handler};
use crate::time::format_time;
use serde::de::DeserializeOwned;
use serde_json::{json, Value};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

type Service = Box<dyn Fn(&Value) -> Outcome<Value>>;

/// The request that a handler gets, and what the services answer it.
pub struct Test {
    method: String,
    path: String,
    query: Vec<(String, String)>,
    raw_query: Option<String>,
    params: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    auth: Auth,
    route: String,
    now: SystemTime,
    seed: u64,
    services: BTreeMap<String, Service>,
    secrets: BTreeMap<String, String>,
    vars: BTreeMap<String, Value>,
    gone: bool,
}

/// What a handler answered and did.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The header lines.
    pub headers: Vec<(String, String)>,
    /// The body, of an answer that is none of an error.
    pub body: Vec<u8>,
    /// The code of an error.
    pub code: String,
    /// The message of an error. The runner fills an empty one with a text of its own.
    pub message: String,
    /// The further members of an error: see [`Response::with_member`](crate::Response::with_member).
    pub members: serde_json::Map<String, Value>,
    /// The log lines: `info: text`.
    pub logs: Vec<String>,
    /// The operations that were run, with their arguments.
    pub calls: Vec<(String, Value)>,
    /// An answer in parts ended with an error, of which `code` and `message` are. The body has the parts before.
    pub broken_off: bool,
    /// The handler called [`Context::keep_writes`](crate::Context::keep_writes).
    pub kept_writes: bool,
}

impl Answer {
    /// The first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let same = |pair: &&(String, String)| pair.0.eq_ignore_ascii_case(name);
        self.headers.iter().find(same).map(|pair| pair.1.as_str())
    }

    /// The body as text.
    ///
    /// # Panics
    ///
    /// When it is none.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the answer's body is UTF-8")
    }

    /// The body read as JSON.
    ///
    /// # Panics
    ///
    /// When it does not fit.
    pub fn json<T: DeserializeOwned>(&self) -> T {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(why) => panic!("read the answer's body {:?}: {}", String::from_utf8_lossy(&self.body), why),
        }
    }
}

impl Test {
    /// A request by an anonymous caller. A query may follow the path after "?".
    pub fn new(method: &str, target: &str) -> Test {
        let (path, raw_query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let query = raw_query.unwrap_or("").split('&').filter(|part| !part.is_empty()).map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (unescape(name), unescape(value))
        });
        Test {
            method: method.into(),
            path: path.into(),
            query: query.collect(),
            raw_query: raw_query.map(String::from),
            params: Vec::new(),
            headers: Vec::new(),
            body: Vec::new(),
            auth: Auth::default(),
            route: String::new(),
            now: SystemTime::now(),
            seed: 1,
            services: BTreeMap::new(),
            secrets: BTreeMap::new(),
            vars: BTreeMap::new(),
            gone: false,
        }
    }

    /// Adds a path parameter.
    pub fn param(mut self, name: &str, value: &str) -> Test {
        self.params.push((name.into(), value.into()));
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Test {
        self.headers.push((name.to_ascii_lowercase(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Test {
        self.body = body.into();
        self
    }

    /// Says who calls.
    pub fn auth(mut self, auth: Auth) -> Test {
        self.auth = auth;
        self
    }

    /// Sets the template of the route.
    pub fn route(mut self, route: &str) -> Test {
        self.route = route.into();
        self
    }

    /// Sets the time; without it, it is the real one.
    pub fn now(mut self, now: SystemTime) -> Test {
        self.now = now;
        self
    }

    /// Seeds what the handler gets for randomness, which is the same in every test.
    pub fn seed(mut self, seed: u64) -> Test {
        self.seed = seed;
        self
    }

    /// Answers a service operation ("query", "apiKeys.create"): the closure gets the
    /// arguments and gives the result, or an error. The guest ABI has the shapes of
    /// both.
    pub fn on(mut self, op: &str, service: impl Fn(&Value) -> Outcome<Value> + 'static) -> Test {
        self.services.insert(op.into(), Box::new(service));
        self
    }

    /// Answers query, insert and update with these rows, whatever the arguments.
    pub fn rows(self, op: &str, rows: Value) -> Test {
        let count = rows.as_array().map_or(0, Vec::len);
        self.on(op, move |_| Ok(json!({ "rows": rows, "count": count, "more": false, "nextCursor": null })))
    }

    /// Adds a secret that the schema would declare.
    pub fn secret(mut self, name: &str, value: &str) -> Test {
        self.secrets.insert(name.into(), value.into());
        self
    }

    /// Adds a variable that the schema would declare; a duration is in seconds, a decimal a string.
    pub fn var(mut self, name: &str, value: impl Into<Value>) -> Test {
        self.vars.insert(name.into(), value.into());
        self
    }

    /// Makes the client of an answer in parts take no part of it.
    pub fn gone(mut self) -> Test {
        self.gone = true;
        self
    }

    /// Runs the handler.
    pub fn run(self, handler: Handler) -> Answer {
        let fake = Fake {
            random: Cell::new(self.seed),
            test: self,
            headers: RefCell::default(),
            sent: RefCell::default(),
            logs: RefCell::default(),
            calls: RefCell::default(),
            called: RefCell::default(),
            started: RefCell::default(),
            kept: Cell::new(false),
            read: Cell::new(0),
        };
        serve(&fake, handler);
        let sent = fake.sent.into_inner().expect("an answer was sent");
        Answer {
            status: sent.status,
            headers: sent.headers,
            body: sent.body,
            code: sent.code,
            message: sent.message,
            members: sent.members,
            logs: fake.logs.into_inner(),
            calls: fake.calls.into_inner(),
            broken_off: sent.broken_off,
            kept_writes: fake.kept.get(),
        }
    }
}

/// Undoes percent-encoding, and "+" for a blank.
fn unescape(text: &str) -> String {
    let mut plain = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        rest = more;
        let hex = |digit: u8| (digit as char).to_digit(16);
        match (first, more) {
            (b'+', _) => plain.push(b' '),
            (b'%', [a, b, more @ ..]) if hex(*a).is_some() && hex(*b).is_some() => {
                plain.push((hex(*a).unwrap_or(0) * 16 + hex(*b).unwrap_or(0)) as u8);
                rest = more;
            }
            _ => plain.push(*first),
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[derive(Default)]
struct Sent {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    code: String,
    message: String,
    members: serde_json::Map<String, Value>,
    streams: bool,
    broken_off: bool,
}

struct Fake {
    test: Test,
    headers: RefCell<Vec<(String, String)>>,
    sent: RefCell<Option<Sent>>,
    logs: RefCell<Vec<String>>,
    calls: RefCell<Vec<(String, Value)>>,
    /// The result of the last operation.
    called: RefCell<Value>,
    /// Outcomes of operations that were begun and not taken, by ticket.
    started: RefCell<Vec<Option<Outcome<Value>>>>,
    kept: Cell<bool>,
    /// How much of the body was read in parts.
    read: Cell<usize>,
    random: Cell<u64>,
}

impl Host for Fake {
    fn method(&self) -> String {
        self.test.method.clone()
    }
    fn path(&self) -> String {
        self.test.path.clone()
    }
    fn value(&self, kind: Kind, name: &str) -> Option<String> {
        self.pairs(kind).into_iter().find(|pair| pair.0 == name).map(|pair| pair.1)
    }
    fn pairs(&self, kind: Kind) -> Vec<(String, String)> {
        match kind {
            Kind::Param => self.test.params.clone(),
            Kind::Query => self.test.query.clone(),
            Kind::Header => self.test.headers.clone(),
            Kind::RawQuery => self.test.raw_query.iter().map(|query| (String::new(), query.clone())).collect(),
        }
    }
    fn body(&self) -> Vec<u8> {
        self.test.body.clone()
    }
    fn read(&self, into: &mut [u8]) -> std::result::Result<usize, HostError> {
        let rest = &self.test.body[self.read.get()..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.read.set(self.read.get() + length);
        Ok(length)
    }
    fn context(&self) -> Vec<u8> {
        let facts = json!({
            "requestId": "01test00000000000000000000",
            "route": self.test.route,
            "deadline": format_time(self.test.now + Duration::from_secs(10)),
            "auth": self.test.auth,
        });
        facts.to_string().into_bytes()
    }
    fn set_header(&self, name: &str, value: &str) -> Done {
        self.open()?;
        let mut headers = self.headers.borrow_mut();
        rules::header(&headers, name, value)?;
        headers.push((name.into(), value.into()));
        Ok(())
    }
    fn send(&self, status: u16, body: &[u8]) -> Done {
        self.open()?;
        rules::body(status, body.len())?;
        let mut headers = self.headers.take();
        if !body.is_empty() && !headers.iter().any(|pair| pair.0.eq_ignore_ascii_case("content-type")) {
            headers.push(("content-type".into(), "application/json".into()));
        }
        *self.sent.borrow_mut() = Some(Sent { status, headers, body: body.into(), ..Sent::default() });
        Ok(())
    }
    fn send_error(&self, status: u16, code: &str, message: &str) -> Done {
        let mut sent = self.sent.borrow_mut();
        if sent.as_ref().map_or(false, |sent| !sent.streams) {
            return Err(HostError::new(Code::Invalid, ""));
        }
        rules::failure(status, message)?;
        let code = match (code, status) {
            ("", 400) => "bad_request",
            ("", 401) => "unauthorized",
            ("", 403) => "forbidden",
            ("", 404) => "not_found",
            ("", 405) => "method_not_allowed",
            ("", 408) => "request_timeout",
            ("", 409) => "conflict",
            ("", 413) => "body_too_large",
            ("", 429) => "rate_limited",
            ("", 501) => "method_not_implemented",
            ("", 503) => "unavailable",
            ("", _) => "error",
            _ => code,
        };
        let (code, message) = (code.into(), message.into());
        if let Some(sent) = sent.as_mut() {
            sent.broken_off = true;
            sent.code = code;
            sent.message = message;
            return Ok(());
        }
        let mut headers = self.headers.take();
        headers.retain(|pair| !pair.0.eq_ignore_ascii_case("content-type"));
        *sent = Some(Sent { status, headers, code, message, ..Sent::default() });
        Ok(())
    }
    fn send_result(&self, status: u16, part: Part) -> Done {
        let called = self.called.borrow();
        let body = match part {
            Part::All => Some(&*called).filter(|result| !result.is_null()),
            Part::Rows => called.get("rows"),
            Part::Row => called.get("row").or_else(|| called.get("rows").and_then(|rows| rows.get(0))),
        };
        match body {
            Some(body) => self.send(status, body.to_string().as_bytes()),
            None => Err(HostError::new(Code::NotFound, "")),
        }
    }
    fn call(&self, op: &str, args: &[u8]) -> Done {
        *self.called.borrow_mut() = Value::Null;
        let args: Value = match serde_json::from_slice(args) {
            Ok(args) => args,
            Err(why) => return Err(HostError::new(Code::Invalid, why.to_string())),
        };
        self.calls.borrow_mut().push((op.into(), args.clone()));
        let result = match (self.test.services.get(op), op) {
            (Some(service), _) => service(&args)?,
            (None, "secret") => {
                let name = args["name"].as_str().unwrap_or_default();
                let none = || HostError::new(Code::Denied, format!("secret {:?} is not declared", name));
                json!({ "value": self.test.secrets.get(name).ok_or_else(none)? })
            }
            (None, "problem") => {
                let status = args["status"].as_u64().unwrap_or_default() as u16;
                let members = args["members"].as_object().cloned().unwrap_or_default();
                rules::members(&members)?;
                self.send_error(status, args["code"].as_str().unwrap_or_default(), args["detail"].as_str().unwrap_or_default())?;
                if let Some(sent) = self.sent.borrow_mut().as_mut() {
                    sent.members = members;
                }
                json!({})
            }
            (None, "var") => {
                let name = args["name"].as_str().unwrap_or_default();
                let none = || HostError::new(Code::Denied, format!("variable {:?} is not declared", name));
                json!({ "value": self.test.vars.get(name).ok_or_else(none)? })
            }
            _ => {
                let message = format!("the test has no answer for {}: add .on({:?}, …)", op, op);
                return Err(HostError::new(Code::Invalid, message));
            }
        };
        *self.called.borrow_mut() = result;
        Ok(())
    }
    fn start(&self, op: &str, args: &[u8]) -> Outcome<u32> {
        let done = self.call(op, args).map(|_| self.called.take());
        let mut started = self.started.borrow_mut();
        started.push(Some(done));
        Ok(started.len() as u32 - 1)
    }
    fn take(&self, ticket: u32) -> Done {
        let done = self.started.borrow_mut().get_mut(ticket as usize).and_then(Option::take);
        *self.called.borrow_mut() = done.unwrap_or_else(|| Err(HostError::new(Code::NotFound, "")))?;
        Ok(())
    }
    fn result(&self) -> Outcome<Vec<u8>> {
        Ok(self.called.borrow().to_string().into_bytes())
    }
    fn begin(&self, status: u16) -> Done {
        self.open()?;
        rules::body(status, 1)?;
        let mut headers = self.headers.take();
        if !headers.iter().any(|pair| pair.0.eq_ignore_ascii_case("content-type")) {
            headers.push(("content-type".into(), "application/octet-stream".into()));
        }
        *self.sent.borrow_mut() = Some(Sent { status, headers, streams: true, ..Sent::default() });
        Ok(())
    }
    fn write(&self, part: &[u8]) -> Done {
        if self.test.gone {
            return Err(HostError::new(Code::Unavailable, ""));
        }
        if let Some(sent) = self.sent.borrow_mut().as_mut() {
            sent.body.extend_from_slice(part);
        }
        Ok(())
    }
    fn keep_writes(&self) {
        self.kept.set(true);
    }
    fn log(&self, level: Level, text: &str) {
        let level = ["debug", "info", "warn", "error", "failure"][level as usize];
        self.logs.borrow_mut().push(format!("{}: {}", level, text));
    }
    /// SplitMix64: enough for a test, and the same in each.
    fn random(&self, into: &mut [u8]) {
        for chunk in into.chunks_mut(8) {
            let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
            self.random.set(state);
            let mut z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(z ^ z >> 31).to_le_bytes()[..chunk.len()]);
        }
    }
    fn now(&self) -> Duration {
        self.test.now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }
}

impl Fake {
    /// There is one answer.
    fn open(&self) -> Done {
        match *self.sent.borrow() {
            Some(_) => Err(HostError::new(Code::Invalid, "")),
            None => Ok(()),
        }
    }
}

/// Which answers the runner lets pass. The runner is the one that enforces them; here
/// they are reported earlier, to a unit test.
mod rules {
    use super::{Code, Done, HostError};
    use std::net::{Ipv4Addr, Ipv6Addr};

    const MAX_HEADER_LINES: usize = 100;
    const MAX_HEADER_BYTES: usize = 16 << 10;
    const MAX_MESSAGE: usize = 8 << 10;
    /// The default of `response` under [sandbox] in runner.toml.
    const MAX_BODY: usize = 8 << 20;

    fn refuse(code: Code, why: &str) -> Done {
        Err(HostError::new(code, why))
    }

    pub(super) fn header(set: &[(String, String)], name: &str, value: &str) -> Done {
        let bytes: usize = set.iter().map(|pair| pair.0.len() + pair.1.len()).sum();
        let single = ["content-type", "location"].iter().any(|one| name.eq_ignore_ascii_case(one));
        if let Some(why) = denied(name, value) {
            return refuse(Code::Denied, why);
        }
        if single && set.iter().any(|pair| pair.0.eq_ignore_ascii_case(name)) {
            return refuse(Code::Invalid, "an answer has one of them");
        }
        if set.len() >= MAX_HEADER_LINES || bytes + name.len() + value.len() > MAX_HEADER_BYTES {
            return refuse(Code::TooLarge, "an answer has at most 100 header lines, and 16 KiB of them");
        }
        Ok(())
    }

    pub(super) fn body(status: u16, length: usize) -> Done {
        match status {
            200..=599 if length > MAX_BODY => {
                refuse(Code::TooLarge, "the body is larger than a server takes unless its runner.toml says so")
            }
            204 | 304 if length > 0 => refuse(Code::Invalid, "204 and 304 have no body"),
            200..=599 => Ok(()),
            _ => refuse(Code::Invalid, "the status of an answer is 200 to 599"),
        }
    }

    pub(super) fn members(members: &serde_json::Map<String, serde_json::Value>) -> Done {
        let reserved = ["type", "title", "status", "detail", "instance", "code", "requestId", "request_id"];
        match reserved.iter().find(|name| members.contains_key(**name)) {
            Some(_) => refuse(Code::Invalid, "the runner sets this member of a problem: choose another name"),
            None => Ok(()),
        }
    }

    pub(super) fn failure(status: u16, message: &str) -> Done {
        match status {
            400..=599 if message.len() > MAX_MESSAGE => refuse(Code::TooLarge, "a message has at most 8 KiB"),
            400..=599 => Ok(()),
            _ => refuse(Code::Invalid, "the status of an error is 400 to 599"),
        }
    }

    /// The headers that the runner sets itself.
    const HOSTS: [&str; 10] = [
        "connection",
        "transfer-encoding",
        "content-length",
        "date",
        "server",
        "trailer",
        "upgrade",
        "te",
        "keep-alive",
        "x-request-id",
    ];

    fn denied(name: &str, value: &str) -> Option<&'static str> {
        let lower = name.to_ascii_lowercase();
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(token) {
            return Some("a header's name is made of letters, digits and !#$%&'*+-.^_`|~");
        }
        if HOSTS.contains(&lower.as_str()) || lower.starts_with("proxy-") || lower.starts_with("ratelimit") {
            return Some("the runner sets this header");
        }
        if value.chars().any(|c| c != '\t' && c < ' ' || c == '\x7f') {
            return Some("a header's value has no control characters");
        }
        if value.trim_matches(|c| c == ' ' || c == '\t') != value {
            return Some("a header's value has no blanks around it");
        }
        if lower == "location" && !location(value) {
            return Some(
                "a location is a URI reference that does not begin with //, without a tab, a backslash or a scheme that \
                 runs a script; the host of a URL is in ASCII, without a user name",
            );
        }
        None
    }

    fn location(value: &str) -> bool {
        if value.is_empty() || value.contains(['\t', '\\']) || value.starts_with("//") {
            return false;
        }
        let (scheme, rest) = match value.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_ascii_lowercase(), rest),
            _ => return true,
        };
        match scheme.as_str() {
            "javascript" | "vbscript" | "data" => false,
            "http" | "https" | "ftp" | "ws" | "wss" => {
                let authority = rest.strip_prefix("//").and_then(|rest| rest.split(['/', '?', '#']).next());
                authority.map_or(false, authority_taken)
            }
            _ => true,
        }
    }

    /// Says whether a text is the scheme of a URI (RFC 3986, section 3.1).
    fn is_scheme(text: &str) -> bool {
        text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    }

    /// Says whether the runner takes a host, and perhaps a port, in a location.
    fn authority_taken(authority: &str) -> bool {
        let (host, port) = match authority.rfind(':') {
            Some(at) if authority.rfind(']').map_or(true, |end| at > end) => (&authority[..at], &authority[at + 1..]),
            _ => (authority, ""),
        };
        let digits = port.bytes().all(|b| b.is_ascii_digit());
        if !digits || !port.is_empty() && port.parse::<u16>().is_err() {
            return false;
        }
        if let Some(inner) = host.strip_prefix('[') {
            return inner.strip_suffix(']').map_or(false, |inner| inner.parse::<Ipv6Addr>().is_ok());
        }
        let named = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        !host.is_empty() && host.chars().all(named) && (host.parse::<Ipv4Addr>().is_ok() || !ends_in_number(host))
    }

    /// Says whether a browser reads the host as an IPv4 address.
    fn ends_in_number(host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let last = host.rsplit('.').next().unwrap_or("").to_ascii_lowercase();
        match last.strip_prefix("0x") {
            Some(hex) => hex.bytes().all(|b| b.is_ascii_hexdigit()),
            None => !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()),
        }
    }
}
