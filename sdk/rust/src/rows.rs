//! Changing rows, with the caller's authority.

use crate::abi::Code;
use crate::context::Context;
use crate::host::Part;
use crate::host_error::{HostError, Outcome};
use crate::operation::{self, Operation};
use crate::query::{field, Condition, Conditions, Counted, Counts};
use crate::response::{Body, Content};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Deserialize)]
struct Rows<T> {
    rows: Vec<T>,
}

/// New rows of an entity.
#[derive(Clone, Debug)]
pub struct Insertion {
    entity: String,
    values: Outcome<Value>,
}

/// Inserts one row for an object (a struct, a map), or one for each object of a list, at
/// most 1,000. The runner fills in ids, defaults and the tenant, and refuses values for
/// fields that the caller may not write.
///
/// A field of a struct that is `None` is sent as null; to omit it use
/// `#[serde(skip_serializing_if = "Option::is_none")]`.
pub fn insert(entity: impl Into<String>, values: impl Serialize) -> Insertion {
    let entity = entity.into();
    let values = value("insert", "values", values);
    Insertion { entity, values }
}

fn value(op: &str, member: &str, values: impl Serialize) -> Outcome<Value> {
    operation::check(op, member, &values)?;
    serde_json::to_value(values).map_err(|why| HostError::new(Code::Invalid, format!("{}: {}: {}", op, member, why)))
}

impl Insertion {
    /// Inserts, and returns the new row (of several, the first).
    pub fn row<T: DeserializeOwned>(&self, ctx: &Context) -> Outcome<T> {
        let none = || HostError::new(Code::NotFound, "there was nothing to insert");
        self.rows(ctx)?.into_iter().next().ok_or_else(none)
    }

    /// Inserts, and returns the new rows.
    pub fn rows<T: DeserializeOwned>(&self, ctx: &Context) -> Outcome<Vec<T>> {
        self.operation().result(ctx).map(|result: Rows<T>| result.rows)
    }

    /// Inserts, without reading the result.
    pub fn run(&self, ctx: &Context) -> Outcome<()> {
        self.operation().run(ctx)
    }

    fn operation(&self) -> Operation {
        #[derive(Serialize)]
        struct Args<'a> {
            into: &'a str,
            values: &'a Value,
        }
        match &self.values {
            Ok(values) => {
                let part = if values.is_array() { Part::Rows } else { Part::Row };
                Operation::new("insert", Args { into: &self.entity, values }, part)
            }
            Err(why) => Operation::failed("insert", why.clone()),
        }
    }
}

/// As a body it is the new row, or the list of them when a list was inserted.
impl Body for Insertion {
    fn content(self) -> Content {
        self.operation().content()
    }
}

/// A change of rows.
#[derive(Clone, Debug)]
pub struct Change {
    entity: String,
    set: Outcome<Value>,
    conditions: Conditions,
}

/// Sets the members of an object (a struct, a map) in the rows that the caller may read
/// and change:
///
/// ```
/// # use runner_sdk::*;
/// # fn handler(ctx: &Context, req: &Request) -> Result {
/// let paid = serde_json::json!({"status": "paid"});
/// let n = update("Order", paid).filter("id", "=", req.param("id")).run(ctx)?;
/// # Ok(ok(n))
/// # }
/// ```
///
/// A member that is not there stays as it is, and one that is `None` becomes null: omit it with
/// `#[serde(skip_serializing_if = "Option::is_none")]`. A float that is not finite is an error;
/// but `json!` makes null of one.
///
/// Without a condition it is an error, unless [`Change::every`] says that all rows are
/// meant. A row that the caller may not change as it is now is left alone; a change that
/// would make of it what the caller may not make is an error with the code `denied`, and
/// then no row is changed.
pub fn update(entity: impl Into<String>, set: impl Serialize) -> Change {
    let entity = entity.into();
    let set = value("update", "set", set);
    Change { entity, set, conditions: Conditions::default() }
}

impl Change {
    /// Adds a condition, as that of a query does.
    pub fn filter(self, field: impl Into<String>, operator: &str, value: impl Serialize) -> Change {
        self.matching(self::field(field, operator, value))
    }

    /// Adds a condition made by [`field`], [`and`](crate::and), [`or`](crate::or) and
    /// [`not`](crate::not).
    pub fn matching(mut self, condition: Condition) -> Change {
        self.conditions.add(condition);
        self
    }

    /// Permits to run without a condition, on all rows.
    pub fn every(mut self) -> Change {
        self.conditions.every = true;
        self
    }

    /// Updates, and returns the number of rows.
    pub fn run(&self, ctx: &Context) -> Outcome<u64> {
        self.operation().result(ctx).map(|result: Counted| result.count)
    }

    /// Updates, and returns the changed rows.
    pub fn rows<T: DeserializeOwned>(&self, ctx: &Context) -> Outcome<Vec<T>> {
        self.operation().result(ctx).map(|result: Rows<T>| result.rows)
    }

    /// Changes at most that number of rows, 1 to 1,000. `run` then returns whether other rows match.
    /// It is the last step.
    pub fn limit(self, rows: u32) -> LimitedChange {
        LimitedChange { change: self, limit: rows }
    }

    fn operation(&self) -> Operation {
        self.limited(None)
    }

    fn limited(&self, limit: Option<u32>) -> Operation {
        #[derive(Serialize)]
        struct Args<'a> {
            #[serde(rename = "in")]
            entity: &'a str,
            set: &'a Value,
            #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
            conditions: Option<Vec<&'a Value>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            limit: Option<u32>,
        }
        match (&self.set, self.conditions.list()) {
            (Ok(set), Ok(conditions)) => {
                Operation::new("update", Args { entity: &self.entity, set, conditions, limit }, Part::Rows)
            }
            (Err(why), _) => Operation::failed("update", why.clone()),
            (_, Err(why)) => Operation::failed("update", why),
        }
    }
}

/// A change with a limit: see [`Change::limit`].
#[derive(Clone, Debug)]
pub struct LimitedChange {
    change: Change,
    limit: u32,
}

impl LimitedChange {
    /// Updates the rows, and returns their number and whether other rows match.
    pub fn run(&self, ctx: &Context) -> Outcome<Counts> {
        self.change.limited(Some(self.limit)).result(ctx)
    }

    /// Updates, and returns the changed rows.
    pub fn rows<T: DeserializeOwned>(&self, ctx: &Context) -> Outcome<Vec<T>> {
        self.change.limited(Some(self.limit)).result(ctx).map(|result: Rows<T>| result.rows)
    }
}

/// As a body it is the list of the changed rows, as they are then.
impl Body for Change {
    fn content(self) -> Content {
        self.operation().content()
    }
}

/// A removal of rows.
#[derive(Clone, Debug)]
pub struct Removal {
    entity: String,
    conditions: Conditions,
}

/// Deletes the rows that the caller may read and delete:
///
/// ```
/// # use runner_sdk::*;
/// # fn handler(ctx: &Context, req: &Request) -> Result {
/// if remove("Order").filter("id", "=", req.param("id")).run(ctx)? == 0 {
///     return Ok(not_found("no such order"));
/// }
/// # Ok(no_content())
/// # }
/// ```
///
/// Without a condition it is an error, unless [`Removal::every`] says that all rows are
/// meant.
pub fn remove(entity: impl Into<String>) -> Removal {
    Removal { entity: entity.into(), conditions: Conditions::default() }
}

impl Removal {
    /// Adds a condition, as that of a query does.
    pub fn filter(self, field: impl Into<String>, operator: &str, value: impl Serialize) -> Removal {
        self.matching(self::field(field, operator, value))
    }

    /// Adds a condition made by [`field`], [`and`](crate::and), [`or`](crate::or) and
    /// [`not`](crate::not).
    pub fn matching(mut self, condition: Condition) -> Removal {
        self.conditions.add(condition);
        self
    }

    /// Permits to run without a condition, on all rows.
    pub fn every(mut self) -> Removal {
        self.conditions.every = true;
        self
    }

    /// Deletes at most that number of rows, 1 to 1,000. `run` then returns whether other rows match.
    /// It is the last step.
    pub fn limit(self, rows: u32) -> LimitedRemoval {
        LimitedRemoval { removal: self, limit: rows }
    }

    /// Deletes, and returns the number of rows.
    pub fn run(&self, ctx: &Context) -> Outcome<u64> {
        self.limited(None)?.result(ctx).map(|result: Counted| result.count)
    }

    fn limited(&self, limit: Option<u32>) -> Outcome<Operation> {
        #[derive(Serialize)]
        struct Args<'a> {
            from: &'a str,
            #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
            conditions: Option<Vec<&'a Value>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            limit: Option<u32>,
        }
        let args = Args { from: &self.entity, conditions: self.conditions.list()?, limit };
        Ok(Operation::new("delete", args, Part::All))
    }
}

/// A removal with a limit: see [`Removal::limit`].
#[derive(Clone, Debug)]
pub struct LimitedRemoval {
    removal: Removal,
    limit: u32,
}

impl LimitedRemoval {
    /// Deletes the rows, and returns their number and whether other rows match.
    pub fn run(&self, ctx: &Context) -> Outcome<Counts> {
        self.removal.limited(Some(self.limit))?.result(ctx)
    }
}
