//! Signatures, made by the runner.

use crate::context::Context;
use crate::host_error::Outcome;
use crate::operation::call;
use serde::{Deserialize, Serialize};

/// A hash function (FIPS 180-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum Algorithm {
    /// SHA-256
    #[serde(rename = "SHA-256")]
    Sha256,
    /// SHA-384
    #[serde(rename = "SHA-384")]
    Sha384,
    /// SHA-512
    #[serde(rename = "SHA-512")]
    Sha512,
}

/// The key of an HMAC.
#[derive(Clone, Copy)]
pub enum Key<'a> {
    /// The secret of that name, which the schema declares: the handler never sees it.
    Secret(&'a str),
    /// These bytes.
    Bytes(&'a [u8]),
}

/// What a hash function gave.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Digest {
    /// In small hexadecimal digits.
    pub hex: String,
    /// In base64, with padding.
    pub base64: String,
}

/// Bytes on their way to the host: as text where they are.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Data<'a> {
    Text(&'a str),
    Binary { base64: String },
}

pub(crate) fn data(bytes: &[u8]) -> Data<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Data::Text(text),
        Err(_) => Data::Binary { base64: base64(bytes) },
    }
}

impl Context<'_> {
    /// Hashes.
    pub fn digest(&self, algorithm: Algorithm, of: impl AsRef<[u8]>) -> Outcome<Digest> {
        #[derive(Serialize)]
        struct Args<'a> {
            algorithm: Algorithm,
            data: Data<'a>,
        }
        call("digest", Args { algorithm, data: data(of.as_ref()) }).result(self)
    }

    /// Signs (RFC 2104).
    pub fn hmac(&self, algorithm: Algorithm, key: Key<'_>, of: impl AsRef<[u8]>) -> Outcome<Digest> {
        #[derive(Serialize)]
        struct Args<'a> {
            algorithm: Algorithm,
            #[serde(skip_serializing_if = "Option::is_none")]
            secret: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            key: Option<Data<'a>>,
            data: Data<'a>,
        }
        let (secret, key) = match key {
            Key::Secret(name) => (Some(name), None),
            Key::Bytes(bytes) => (None, Some(data(bytes))),
        };
        call("hmac", Args { algorithm, secret, key, data: data(of.as_ref()) }).result(self)
    }

    /// Compares in a time that depends on the lengths alone: signatures are compared so,
    /// never byte by byte.
    pub fn timing_safe_equal(&self, a: impl AsRef<[u8]>, b: impl AsRef<[u8]>) -> Outcome<bool> {
        #[derive(Serialize)]
        struct Args<'a> {
            a: Data<'a>,
            b: Data<'a>,
        }
        #[derive(Deserialize)]
        struct Compared {
            equal: bool,
        }
        let args = Args { a: data(a.as_ref()), b: data(b.as_ref()) };
        call("timingSafeEqual", args).result(self).map(|compared: Compared| compared.equal)
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes base64 (RFC 4648, section 4), with padding.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity((bytes.len() + 2) / 3 * 4);
    for group in bytes.chunks(3) {
        let byte = |i: usize| u32::from(*group.get(i).unwrap_or(&0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let six = (word >> (18 - 6 * digit)) as usize & 63;
            text.push(if digit <= group.len() { DIGITS[six] as char } else { '=' });
        }
    }
    text
}

/// Reads base64 with padding, as the host writes it.
pub(crate) fn unbase64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text.as_bytes().chunks(4) {
        let padding = group.iter().rev().take_while(|&&c| c == b'=').count();
        if group.len() != 4 || padding > 2 {
            return None;
        }
        let mut word = 0;
        for c in &group[..4 - padding] {
            word = word << 6 | DIGITS.iter().position(|digit| digit == c)?;
        }
        word <<= 6 * padding;
        bytes.extend_from_slice(&[(word >> 16) as u8, (word >> 8) as u8, word as u8][..3 - padding]);
    }
    Some(bytes)
}
