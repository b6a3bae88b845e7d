//! The request at hand.

use crate::error::BodyError;
use crate::host::{Host, Kind};
use crate::once::Once;
use serde::de::{DeserializeOwned, Error};

/// The request at hand. Values are fetched from the host when they are asked for, so a
/// handler pays for what it reads.
pub struct Request<'a> {
    host: &'a dyn Host,
    body: Once<Vec<u8>>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(host: &'a dyn Host) -> Request<'a> {
        Request { host, body: Once::new() }
    }

    /// The HTTP method.
    pub fn method(&self) -> String {
        self.host.method()
    }

    /// The raw path, without the query.
    pub fn path(&self) -> String {
        self.host.path()
    }

    /// The path parameter of that name, percent-decoded. One of the matched route is
    /// never empty; one that the route does not have is.
    pub fn param(&self, name: &str) -> String {
        self.host.value(Kind::Param, name).unwrap_or_default()
    }

    /// The first query value of that name.
    pub fn query(&self, name: &str) -> Option<String> {
        self.host.value(Kind::Query, name)
    }

    /// Every query value of that name, in order.
    pub fn query_all(&self, name: &str) -> Vec<String> {
        let pairs = self.host.pairs(Kind::Query).into_iter();
        pairs.filter(|pair| pair.0 == name).map(|pair| pair.1).collect()
    }

    /// The header of that name (lower case). Repeated lines are joined with ", ".
    /// Credentials that the runner has checked are not among the headers.
    pub fn header(&self, name: &str) -> Option<String> {
        self.host.value(Kind::Header, name)
    }

    /// All path parameters, in order of the path.
    pub fn params(&self) -> Vec<(String, String)> {
        self.host.pairs(Kind::Param)
    }

    /// All query pairs, in order of arrival.
    pub fn queries(&self) -> Vec<(String, String)> {
        self.host.pairs(Kind::Query)
    }

    /// The query as it was sent, without its "?". Signatures of URLs are made of it.
    pub fn raw_query(&self) -> String {
        self.host.pairs(Kind::RawQuery).pop().map(|pair| pair.1).unwrap_or_default()
    }

    /// All headers, in order of arrival, names in lower case.
    pub fn headers(&self) -> Vec<(String, String)> {
        self.host.pairs(Kind::Header)
    }

    /// The exact body, for signatures.
    pub fn raw_body(&self) -> &[u8] {
        self.body.get(|| self.host.body())
    }

    /// The JSON body as a `T`. An empty body and `null` are read as `{}`, so that the
    /// check for a field, an `Option`, finds it missing; a `T` that is not an object gets
    /// `null`. A body that is not JSON in UTF-8, is nested more than 64 levels deep, or does not fit
    /// `T`, answers 400 `invalid_json` when the handler hands the error on.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, BodyError> {
        let blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
        let raw = self.raw_body();
        let start = raw.iter().take_while(|b| blank(b)).count();
        let end = raw.iter().rev().take_while(|b| blank(b)).count();
        if start < raw.len() && &raw[start..raw.len() - end] != b"null" {
            if nesting(raw) > MAX_DEPTH {
                let why = format!("must not be nested more than {} levels deep", MAX_DEPTH);
                return Err(BodyError(Error::custom(why)));
            }
            let text = std::str::from_utf8(raw).map_err(|_| BodyError(Error::custom("must be valid UTF-8")))?;
            return serde_json::from_str(text).map_err(BodyError);
        }
        serde_json::from_str("{}").or_else(|missing| serde_json::from_str("null").map_err(|_| BodyError(missing)))
    }
}

/// How many levels deep JSON may nest that comes from outside.
const MAX_DEPTH: usize = 64;

/// How many brackets of a JSON text are open at once, outside of strings.
fn nesting(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut quoted) = (0usize, 0, false);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => quoted = !quoted,
            b'\\' if quoted => {
                bytes.next();
            }
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
