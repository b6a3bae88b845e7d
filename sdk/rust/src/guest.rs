//! The host of a module that the runner runs: its imports.

use crate::abi::{imports, Code};
use crate::host::{Done, Host, Kind, Level, Part};
use crate::host_error::{HostError, Outcome};
use serde::Deserialize;
use std::time::Duration;

pub(crate) struct Guest;

#[link(wasm_import_module = "wasi_snapshot_preview1")]
extern "C" {
    fn random_get(buf: *mut u8, len: usize) -> i32;
    fn clock_time_get(clock: u32, precision: u64, time: *mut u64) -> i32;
}

/// Fills a buffer with random bytes that cannot be predicted.
pub(crate) fn random(into: &mut [u8]) {
    // Safety: the host writes into the slice alone.
    if unsafe { random_get(into.as_mut_ptr(), into.len()) } != 0 {
        panic!("the host gave no randomness");
    }
}

impl Host for Guest {
    fn method(&self) -> String {
        // Safety, here and below: the host reads and writes what the pointer and the
        // length beside it span, which is a slice or a buffer's room.
        text(whole(|buf, cap| unsafe { imports::request_method(buf, cap) }).unwrap_or_default())
    }
    fn path(&self) -> String {
        text(whole(|buf, cap| unsafe { imports::request_path(buf, cap) }).unwrap_or_default())
    }
    fn value(&self, kind: Kind, name: &str) -> Option<String> {
        let read = match kind {
            Kind::Param => imports::request_param,
            Kind::Query => imports::request_query,
            Kind::Header => imports::request_header,
            Kind::RawQuery => return None, // it has no name
        };
        whole(|buf, cap| unsafe { read(name.as_ptr(), name.len(), buf, cap) }).map(text)
    }
    /// Per pair the host writes two little-endian lengths and then both texts.
    fn pairs(&self, kind: Kind) -> Vec<(String, String)> {
        let bytes = whole(|buf, cap| unsafe { imports::request_pairs(kind as u32, buf, cap) });
        let bytes = bytes.unwrap_or_default();
        let mut rest = &bytes[..];
        let mut pairs = Vec::new();
        while rest.len() >= 8 {
            let length = |at: usize| u32::from_le_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]) as usize;
            let (name, value) = (length(0), length(4));
            let (pair, more) = rest[8..].split_at(name + value);
            pairs.push((text(pair[..name].to_vec()), text(pair[name..].to_vec())));
            rest = more;
        }
        pairs
    }
    fn body(&self) -> Vec<u8> {
        pieces(|offset, buf, cap| unsafe { imports::request_body(offset, buf, cap) }).unwrap_or_default()
    }
    fn read(&self, into: &mut [u8]) -> Result<usize, HostError> {
        let n = unsafe { imports::request_read(into.as_mut_ptr(), into.len()) };
        done(n).map(|_| n as usize)
    }
    fn context(&self) -> Vec<u8> {
        whole(|buf, cap| unsafe { imports::context(buf, cap) }).unwrap_or_default()
    }
    fn set_header(&self, name: &str, value: &str) -> Done {
        done(unsafe { imports::response_header(name.as_ptr(), name.len(), value.as_ptr(), value.len()) })
    }
    fn send(&self, status: u16, body: &[u8]) -> Done {
        done(unsafe { imports::response_send(status.into(), body.as_ptr(), body.len()) })
    }
    fn send_error(&self, status: u16, code: &str, message: &str) -> Done {
        done(unsafe {
            imports::response_error(status.into(), code.as_ptr(), code.len(), message.as_ptr(), message.len())
        })
    }
    fn send_result(&self, status: u16, part: Part) -> Done {
        done(unsafe { imports::response_send_result(status.into(), part as u32) })
    }
    fn call(&self, op: &str, args: &[u8]) -> Done {
        self.called(unsafe { imports::call(op.as_ptr(), op.len(), args.as_ptr(), args.len()) })
    }
    fn start(&self, op: &str, args: &[u8]) -> Result<u32, HostError> {
        let n = unsafe { imports::call_start(op.as_ptr(), op.len(), args.as_ptr(), args.len()) };
        done(n).map(|_| n as u32)
    }
    fn take(&self, ticket: u32) -> Done {
        self.called(unsafe { imports::call_take(ticket) })
    }
    fn result(&self) -> Outcome<Vec<u8>> {
        result().or_else(|n| self.called(n).map(|_| Vec::new()))
    }
    fn begin(&self, status: u16) -> Done {
        done(unsafe { imports::response_begin(status.into()) })
    }
    fn write(&self, part: &[u8]) -> Done {
        done(unsafe { imports::response_write(part.as_ptr(), part.len()) })
    }
    fn keep_writes(&self) {
        unsafe { imports::keep_writes() }
    }
    fn log(&self, level: Level, text: &str) {
        unsafe { imports::log(level as u32, text.as_ptr(), text.len()) }
    }
    fn random(&self, into: &mut [u8]) {
        random(into)
    }
    fn now(&self) -> Duration {
        let mut nanoseconds = 0;
        if unsafe { clock_time_get(0, 1, &mut nanoseconds) } != 0 {
            panic!("the host gave no time");
        }
        Duration::from_nanos(nanoseconds)
    }
}

impl Guest {
    /// The outcome of a call. After an errno the result has the code and the message.
    fn called(&self, n: i32) -> Done {
        if n >= 0 {
            return Ok(());
        }
        #[derive(Deserialize)]
        struct Failure {
            code: String,
            #[serde(default)]
            message: String,
            #[serde(default)]
            entity: String,
            #[serde(default)]
            field: String,
        }
        match serde_json::from_slice::<Failure>(&result().unwrap_or_default()) {
            Ok(failure) => {
                let error = HostError::new(Code::from_name(&failure.code), failure.message);
                Err(error.about(failure.entity, failure.field))
            }
            Err(_) => done(n),
        }
    }
}

fn done(n: i32) -> Done {
    match n {
        0.. => Ok(()),
        _ => Err(HostError::new(Code::from_errno(n), "")),
    }
}

/// The host's texts are UTF-8, except where a client sent other bytes.
fn text(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(other) => String::from_utf8_lossy(other.as_bytes()).into_owned(),
    }
}

/// Reads a value that the host writes only if all of it fits; it returns the length.
/// `None` if the value is absent.
fn whole(read: impl Fn(*mut u8, usize) -> i32) -> Option<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::with_capacity(256);
    loop {
        let n = read(bytes.as_mut_ptr(), bytes.capacity());
        if n < 0 {
            return None;
        }
        let n = n as usize;
        if n <= bytes.capacity() {
            // Safety: the host has written them.
            unsafe { bytes.set_len(n) };
            return Some(bytes);
        }
        bytes.reserve_exact(n);
    }
}

/// Reads a value that the host writes from an offset. It returns the remaining length, so an
/// empty buffer is for reading the length. `Err` is the errno of the host.
fn pieces(read: impl Fn(u32, *mut u8, usize) -> i32) -> Result<Vec<u8>, i32> {
    let length = read(0, std::ptr::null_mut(), 0);
    if length <= 0 {
        return if length < 0 { Err(length) } else { Ok(Vec::new()) };
    }
    let mut bytes: Vec<u8> = Vec::with_capacity(length as usize);
    match read(0, bytes.as_mut_ptr(), length as usize) {
        n if n < 0 => Err(n),
        n => {
            // Safety: the host has written them.
            unsafe { bytes.set_len(n as usize) };
            Ok(bytes)
        }
    }
}

/// The result of the last call, or its error.
fn result() -> Result<Vec<u8>, i32> {
    pieces(|offset, buf, cap| unsafe { imports::call_result(offset, buf, cap) })
}
