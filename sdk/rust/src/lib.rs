//! The SDK for handlers written in Rust.
//!
//! A handler is a function over a [`Context`] and a [`Request`] that returns a
//! [`Response`], made by one of nine helpers, or an [`Error`]:
//!
//! ```
//! use runner_sdk::*;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Deserialize)]
//! struct NewOrder {
//!     item: Option<String>,
//!     qty: Option<u32>,
//! }
//!
//! #[derive(Serialize)]
//! struct Values {
//!     item: String,
//!     qty: u32,
//! }
//!
//! handler!(createOrder, create_order);
//!
//! fn create_order(_: &Context, req: &Request) -> Result {
//!     let order: NewOrder = req.body()?;
//!     let item = order.item.ok_or_else(|| bad_request("missing field: item"))?;
//!     Ok(created(insert("Order", Values { item, qty: order.qty.unwrap_or(1) })))
//! }
//! ```
//!
//! A crate in the app's directory `handlers/orders`, of the crate type `cdylib`, becomes
//! the module `build/orders.wasm` by `runner build`. Its unit tests run natively, by
//! `cargo test`: see [`testing`].
//!
//! Rows are read and changed with the caller's authority, which the schema declares
//! and the runner enforces: [`query`], [`get`], [`insert`], [`update`], [`remove`].
//! All that one request reads and writes is one transaction. It commits when the
//! handler answers below 400; when another request got in between, the handler runs
//! again from the start: its other effects must be safe to repeat.
//!
//! Every request runs in its own sandbox. Statics have the values that they had when the
//! module was initialized; a request never sees what another one left in them. A request
//! need not free its memory.
//!
//! A panic is logged with its location, and answers 500.
//!
//! On `wasm32-wasip1` the time, random numbers and sleeping work in the standard library and in
//! the crates that use it. `println!` and `dbg!` write to the log, and
//! `std::process::exit` with a status other than 0 answers 500. Files, threads and
//! sockets are errors; arguments and variables are empty. On `wasm32-unknown-unknown` none of
//! this works: `SystemTime::now` panics and `println!` does nothing. Use [`Context::random`] and
//! [`Context::now`] there.
//!
//! The keys of a `HashMap` are new in every request: the runner renews them. What was drawn
//! while the module was initialized or warmed, and is kept in a static, stays the same. This
//! includes the generator of `rand::thread_rng` if its first use was then; `runner build`
//! reports it.

#![warn(missing_docs)]

#[rustfmt::skip]
mod abi;
mod aggregate;
mod apikeys;
mod body_reader;
mod client;
mod context;
mod crypto;
mod error;
mod exact;
mod fetch;
mod files;
#[cfg(target_arch = "wasm32")]
mod guest;
mod hash;
mod host;
mod host_error;
mod jobs;
mod once;
mod operation;
mod password;
mod query;
#[cfg(target_arch = "wasm32")]
mod random;
mod request;
mod response;
mod rows;
mod serve;
mod sessions;
mod stream;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod time;
mod webhooks;

pub use abi::Code;
pub use aggregate::{aggregate, Aggregation};
pub use apikeys::{ApiKey, ApiKeyFilter, ApiKeyOptions, ApiKeyPage, ApiKeys};
pub use body_reader::BodyReader;
pub use client::Client;
pub use context::{Auth, AuthKind, Context};
pub use crypto::{Algorithm, Digest, Key};
pub use error::{BodyError, Error, Result};
pub use exact::Null;
pub use fetch::{FetchRequest, FetchResponse, Redirect};
pub use hash::RandomState;
pub use files::{send_file, LinkOptions, SendOptions, StoredFile, Upload, UploadedFile};
pub use host::Level;
pub use host_error::HostError;
pub use jobs::{EnqueuedJob, Job, JobOptions, Jobs};
pub use operation::{call, Operation};
pub use password::PasswordCheck;
pub use query::{and, field, get, not, or, query, select, Condition, Counts, Lookup, Page, Selection};
pub use request::Request;
pub use response::{
    bad_request, created, error, forbidden, no_content, not_found, ok, redirect, redirect_with, unauthorized, Body,
    Raw, Response,
};
pub use rows::{insert, remove, update, Change, Insertion, LimitedChange, LimitedRemoval, Removal};
pub use serve::Handler;
pub use sessions::{LiveSession, RevokeOptions, Session, SessionFilter, SessionOptions, SessionPage, Sessions, UserSessions, CURRENT_SESSION};
pub use stream::{events, stream, stream_with, Event, Writer};
pub use time::{format_time, parse_time};
pub use webhooks::{Delivery, Scheme, Webhooks};

/// Makes a handler the export of a name, that of the schema:
///
/// ```
/// # use runner_sdk::*;
/// # fn list_orders(_: &Context, _: &Request) -> Result { Ok(no_content()) }
/// handler!(listOrders, list_orders);
/// handler!(ping, |_ctx, _req| Ok(ok("pong")));
/// ```
#[macro_export]
macro_rules! handler {
    ($name:ident, $handler:expr) => {
        const _: () = {
            #[cfg_attr(target_arch = "wasm32", export_name = stringify!($name))]
            #[allow(dead_code)]
            extern "C" fn export() {
                $crate::__handle(stringify!($name), $handler)
            }
        };
    };
}

/// Runs handlers before there are requests, for a module's first picture of memory:
/// what a first run only prepares, such as the heap's first pages, every request then
/// finds done. The request is empty but for a body, if one is given; services answer
/// `unavailable`, and answers and log lines are dropped. A module has one at most.
///
/// ```
/// # use runner_sdk::*;
/// # fn list_orders(_: &Context, _: &Request) -> Result { Ok(no_content()) }
/// # fn create_order(_: &Context, _: &Request) -> Result { Ok(no_content()) }
/// warm!(list_orders, create_order => r#"{"item":"tea"}"#);
/// ```
#[macro_export]
macro_rules! warm {
    ($($handler:expr $(=> $body:expr)?),+ $(,)?) => {
        const _: () = {
            #[cfg_attr(target_arch = "wasm32", export_name = "runner_warm")]
            #[allow(dead_code)]
            extern "C" fn export() {
                $($crate::__warm($handler, concat!($($body)?));)+
            }
        };
    };
}

#[doc(hidden)]
pub use serve::{handle as __handle, warm as __warm};
