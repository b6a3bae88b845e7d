//! Errors of operations.

use crate::abi::Code;
use std::error::Error as StdError;
use std::fmt;

pub(crate) type Outcome<T> = std::result::Result<T, HostError>;

/// A failed operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    /// Why, for programs.
    pub code: Code,
    /// Why, for people; may be empty.
    pub message: String,
    /// The operation that failed, such as `insert`; empty if a handler made the error.
    pub op: String,
    /// The entity of an operation on rows; may be empty.
    pub entity: String,
    /// The field that the error is about, such as `email` for a conflict. The fields of `@@unique`
    /// are separated by commas. May be empty.
    pub field: String,
    /// Of an operation that is not the caller's to know of: neither on rows nor on keys,
    /// sessions or webhooks.
    pub(crate) inner: bool,
}

impl HostError {
    /// An error as operations give it, for tests.
    pub fn new(code: Code, message: impl Into<String>) -> HostError {
        HostError {
            code,
            message: message.into(),
            op: String::new(),
            entity: String::new(),
            field: String::new(),
            inner: false,
        }
    }

    /// Returns the error with an entity and a field, for tests.
    pub fn about(self, entity: impl Into<String>, field: impl Into<String>) -> HostError {
        HostError { entity: entity.into(), field: field.into(), ..self }
    }

    /// The error as one of the operation of that name.
    pub(crate) fn of(self, op: &str) -> HostError {
        let callers =
            matches!(op, "query" | "get" | "count" | "aggregate" | "insert" | "update" | "delete" | "webhooks.verify")
                || op.starts_with("apiKeys.")
                || op.starts_with("sessions.")
                || op.starts_with("jobs.");
        HostError { inner: !callers, op: op.into(), ..self }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.name())?;
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl StdError for HostError {}
