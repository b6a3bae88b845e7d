//! Computing over groups of rows, with the caller's authority.

use crate::context::Context;
use crate::host::Part;
use crate::host_error::Outcome;
use crate::operation::Operation;
use crate::query::{field, Condition, Conditions};
use crate::response::{Body, Content};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Computes over the rows of an entity that the caller may read:
///
/// ```
/// # use runner_sdk::*;
/// # fn handler(ctx: &Context, _: &Request) -> Result {
/// let groups: Vec<serde_json::Value> =
///     aggregate("Order").group_by(["status"]).sum(["total"]).count().all(ctx)?;
/// # Ok(ok(groups))
/// # }
/// ```
///
/// A group is `{"group", "count", "sum", "avg", "min", "max"}` with what was asked for. Null is
/// no value: a function without values is `null`. Sums are exact; an average of decimals has six
/// more places.
#[derive(Clone, Debug)]
pub struct Aggregation {
    entity: String,
    conditions: Conditions,
    wanted: Wanted,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Wanted {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    group_by: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sum: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    avg: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    min: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    max: Vec<String>,
}

/// Begins an aggregation of an entity.
pub fn aggregate(entity: impl Into<String>) -> Aggregation {
    Aggregation { entity: entity.into(), conditions: Conditions::default(), wanted: Wanted::default() }
}

impl Aggregation {
    /// Adds a condition: see [`Selection::filter`](crate::Selection::filter).
    pub fn filter(self, name: impl Into<String>, operator: &str, value: impl Serialize) -> Aggregation {
        self.matching(field(name, operator, value))
    }

    /// Adds a condition made by [`field`], [`and`](crate::and), [`or`](crate::or) and
    /// [`not`](crate::not).
    pub fn matching(mut self, condition: Condition) -> Aggregation {
        self.conditions.add(condition);
        self
    }

    /// Names the fields, at most two, that are equal in a group. Without it all rows are one
    /// group. There may be 1,000 groups; they are ordered by these fields.
    pub fn group_by<S: Into<String>>(mut self, fields: impl IntoIterator<Item = S>) -> Aggregation {
        self.wanted.group_by.extend(fields.into_iter().map(|field| Value::String(field.into())));
        self
    }

    /// Groups by the `day`, `week` or `month` of a time, in a time zone such as `Europe/Berlin`; `None`
    /// is UTC. The group has the first day of the period, such as `2026-10-25`. Weeks begin on Monday.
    /// A date has no time zone.
    pub fn group_by_time<'a>(mut self, field: &str, period: &str, zone: impl Into<Option<&'a str>>) -> Aggregation {
        let by = [Some(field), Some(period), zone.into()];
        self.wanted.group_by.push(by.into_iter().flatten().collect());
        self
    }

    /// Computes the number of rows.
    pub fn count(mut self) -> Aggregation {
        self.wanted.count = Some(true);
        self
    }

    /// Computes the sums of fields.
    pub fn sum<S: Into<String>>(mut self, fields: impl IntoIterator<Item = S>) -> Aggregation {
        self.wanted.sum.extend(fields.into_iter().map(Into::into));
        self
    }

    /// Computes the averages of fields.
    pub fn avg<S: Into<String>>(mut self, fields: impl IntoIterator<Item = S>) -> Aggregation {
        self.wanted.avg.extend(fields.into_iter().map(Into::into));
        self
    }

    /// Computes the least values of fields.
    pub fn min<S: Into<String>>(mut self, fields: impl IntoIterator<Item = S>) -> Aggregation {
        self.wanted.min.extend(fields.into_iter().map(Into::into));
        self
    }

    /// Computes the greatest values of fields.
    pub fn max<S: Into<String>>(mut self, fields: impl IntoIterator<Item = S>) -> Aggregation {
        self.wanted.max.extend(fields.into_iter().map(Into::into));
        self
    }

    /// Reads the groups.
    pub fn all<T: DeserializeOwned>(&self, ctx: &Context) -> Outcome<Vec<T>> {
        #[derive(Deserialize)]
        struct Groups<T> {
            rows: Vec<T>,
        }
        self.operation().result(ctx).map(|groups: Groups<T>| groups.rows)
    }

    fn operation(&self) -> Operation {
        #[derive(Serialize)]
        struct Args<'a> {
            from: &'a str,
            #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
            conditions: Option<Vec<&'a Value>>,
            #[serde(flatten)]
            wanted: &'a Wanted,
        }
        match self.conditions.list() {
            Ok(conditions) => {
                let args = Args { from: &self.entity, conditions, wanted: &self.wanted };
                Operation::new("aggregate", args, Part::Rows)
            }
            Err(why) => Operation::failed("aggregate", why),
        }
    }
}

impl Body for Aggregation {
    fn content(self) -> Content {
        self.operation().content()
    }
}
