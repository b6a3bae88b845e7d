//! Reading rows, with the caller's authority.

use crate::abi::Code;
use crate::context::Context;
use crate::exact::{self, Odd, Shape};
use crate::host::Part;
use crate::host_error::{HostError, Outcome};
use crate::operation::Operation;
use crate::response::{Body, Content};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A query over the rows of an entity that the caller may read:
///
/// ```
/// # use runner_sdk::*;
/// # #[derive(serde::Deserialize, serde::Serialize)]
/// # struct Order { id: String }
/// # fn handler(ctx: &Context, _: &Request) -> Result {
/// let orders: Vec<Order> = query("Order")
///     .select(["id", "total"])
///     .filter("status", "=", "open")
///     .order_by_desc("createdAt")
///     .limit(20)
///     .all(ctx)?;
/// # Ok(ok(orders))
/// # }
/// ```
///
/// Rows that the caller may not read are neither counted nor found. An invalid query, such as
/// one with a field that is hidden from the caller, is an error with the code
/// `invalid` that names it.
#[derive(Clone, Debug)]
pub struct Selection {
    entity: String,
    fields: Vec<String>,
    conditions: Conditions,
    order: Vec<(String, &'static str)>,
    limit: Option<u32>,
    cursor: Option<String>,
    included: Includes,
}

/// Begins a query of an entity.
pub fn query(entity: impl Into<String>) -> Selection {
    Selection {
        entity: entity.into(),
        fields: Vec::new(),
        conditions: Conditions::default(),
        order: Vec::new(),
        limit: None,
        cursor: None,
        included: Includes::default(),
    }
}

/// Begins a query with the fields of its rows: `select(["id"]).from("Order")`.
pub fn select<S: Into<String>>(fields: impl IntoIterator<Item = S>) -> Selection {
    query("").select(fields)
}

impl Selection {
    /// Names the entity of a query that [`select`] began.
    pub fn from(mut self, entity: impl Into<String>) -> Selection {
        self.entity = entity.into();
        self
    }

    /// Names the fields of the rows; without it they are all that the caller may read.
    pub fn select<S: Into<String>>(mut self, fields: impl IntoIterator<Item = S>) -> Selection {
        self.fields.extend(fields.into_iter().map(Into::into));
        self
    }

    /// Adds a condition, the `where` of the query: all that are added must hold. The
    /// operators are `=`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `startsWith` and `contains`. A value
    /// that is missing, such as `None`, is an error: [`Null`](crate::Null) compares with null.
    pub fn filter(self, field: impl Into<String>, operator: &str, value: impl Serialize) -> Selection {
        self.matching(self::field(field, operator, value))
    }

    /// Adds a condition made by [`field`], [`and`], [`or`] and [`not`].
    pub fn matching(mut self, condition: Condition) -> Selection {
        self.conditions.add(condition);
        self
    }

    /// Orders the rows by a field; a second one orders what is equal in the first.
    pub fn order_by(mut self, field: impl Into<String>) -> Selection {
        self.order.push((field.into(), "asc"));
        self
    }

    /// Orders the rows by a field, the greatest first.
    pub fn order_by_desc(mut self, field: impl Into<String>) -> Selection {
        self.order.push((field.into(), "desc"));
        self
    }

    /// Bounds the rows, 1 to 1,000; without it there are at most 100.
    pub fn limit(mut self, rows: u32) -> Selection {
        self.limit = Some(rows);
        self
    }

    /// Takes the rows behind a cursor, the `next_cursor` of the page before; the first
    /// page has none. A cursor holds for the same query by the same caller alone.
    pub fn after(mut self, cursor: impl Into<Option<String>>) -> Selection {
        self.cursor = cursor.into();
        self
    }

    /// Includes the row of a to-one relation in place of its id, or the rows of a to-many
    /// relation, with the caller's authority over them: a row that the caller may not read is
    /// `null`. What is included is a query without an entity, as
    /// `include("lines", select(["text"]).limit(20))`; `query("")` has all fields. Includes may
    /// have includes, on two levels.
    pub fn include(mut self, relation: impl Into<String>, query: Selection) -> Selection {
        self.included.add(relation.into(), query);
        self
    }

    /// Reads the rows, at most the limit.
    pub fn all<T: DeserializeOwned>(&self, ctx: &Context) -> Outcome<Vec<T>> {
        self.page(ctx).map(|page| page.rows)
    }

    /// Reads the rows, at most the limit, and the cursor of the next page.
    pub fn page<T: DeserializeOwned>(&self, ctx: &Context) -> Outcome<Page<T>> {
        self.operation(Part::All).result(ctx)
    }

    /// Reads the first row, if there is one.
    pub fn first<T: DeserializeOwned>(&self, ctx: &Context) -> Outcome<Option<T>> {
        Ok(self.clone().limit(1).all(ctx)?.into_iter().next())
    }

    /// Reads the first row. Without any the error has the code `not_found`, which
    /// answers 404 when the handler hands it on.
    pub fn first_or_fail<T: DeserializeOwned>(&self, ctx: &Context) -> Outcome<T> {
        let none = || {
            let why = format!("no row of {} matches the conditions", self.entity);
            HostError::new(Code::NotFound, why).of("query").about(self.entity.clone(), "")
        };
        self.first(ctx)?.ok_or_else(none)
    }

    /// Counts the rows, without regard to the limit.
    pub fn count(&self, ctx: &Context) -> Outcome<u64> {
        let count: Counted = self.counting(None).result(ctx)?;
        Ok(count.count)
    }

    /// Counts at most that number of rows, 1 to 1,000,000, and returns whether there are more.
    pub fn count_at_most(&self, ctx: &Context, rows: u32) -> Outcome<Counts> {
        self.counting(Some(rows)).result(ctx)
    }

    fn counting(&self, at_most: Option<u32>) -> Operation {
        match self.conditions.list() {
            Ok(conditions) => {
                let args = Args { from: &self.entity, conditions, at_most, ..Args::default() };
                Operation::new("count", args, Part::All)
            }
            Err(why) => Operation::failed("count", why),
        }
    }

    /// The query as a body with its page: `{"rows":[…],"nextCursor":…}`. The query
    /// itself is one without, a list.
    pub fn as_page(&self) -> Operation {
        self.operation(Part::All)
    }

    /// The query as a body with its first row alone; without any it answers 404.
    pub fn as_first(&self) -> Operation {
        self.clone().limit(1).operation(Part::Row)
    }

    fn operation(&self, part: Part) -> Operation {
        match self.args() {
            Ok(args) => Operation::new("query", args, part),
            Err(why) => Operation::failed("query", why),
        }
    }

    fn args(&self) -> Outcome<Args<'_>> {
        Ok(Args {
            from: &self.entity,
            conditions: self.conditions.list()?,
            select: &self.fields,
            order: &self.order,
            limit: self.limit,
            cursor: self.cursor.as_deref(),
            include: self.included.object()?,
            id: None,
            at_most: None,
        })
    }
}

impl Body for Selection {
    fn content(self) -> Content {
        self.operation(Part::Rows).content()
    }
}

/// The relations whose rows a query includes.
#[derive(Clone, Debug, Default)]
struct Includes {
    queries: Map<String, Value>,
    failed: Option<HostError>,
}

impl Includes {
    fn add(&mut self, relation: String, query: Selection) {
        let invalid = |why| HostError::new(Code::Invalid, format!("include {}: {}", relation, why));
        match query.args().and_then(|args| serde_json::to_value(args).map_err(invalid)) {
            Ok(query) => {
                self.queries.insert(relation, query);
            }
            Err(why) => self.failed = Some(why),
        }
    }

    fn object(&self) -> Outcome<Option<&Map<String, Value>>> {
        match &self.failed {
            Some(why) => Err(why.clone()),
            None => Ok(Some(&self.queries).filter(|queries| !queries.is_empty())),
        }
    }
}

#[derive(Serialize, Default)]
struct Args<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    from: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    conditions: Option<Vec<&'a Value>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    select: &'a [String],
    #[serde(rename = "orderBy", skip_serializing_if = "<[(String, &str)]>::is_empty")]
    order: &'a [(String, &'static str)],
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<&'a Map<String, Value>>,
    #[serde(rename = "atMost", skip_serializing_if = "Option::is_none")]
    at_most: Option<u32>,
}

#[derive(Deserialize)]
pub(crate) struct Counted {
    pub(crate) count: u64,
}

/// The result of an operation with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The number of rows.
    pub count: u64,
    /// Whether other rows match.
    pub more: bool,
}

/// Some rows of a query.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Leads to the next page; none on the last one.
    pub next_cursor: Option<String>,
}

/// One row by its id.
#[derive(Clone, Debug)]
pub struct Lookup {
    entity: String,
    id: String,
    fields: Vec<String>,
    included: Includes,
}

/// Looks up one row by its id. One that is not there and one that the caller may not
/// read are the same error, with the code `not_found`.
pub fn get(entity: impl Into<String>, id: impl Into<String>) -> Lookup {
    Lookup { entity: entity.into(), id: id.into(), fields: Vec::new(), included: Includes::default() }
}

impl Lookup {
    /// Names the fields of the row; without it they are all that the caller may read.
    pub fn select<S: Into<String>>(mut self, fields: impl IntoIterator<Item = S>) -> Lookup {
        self.fields.extend(fields.into_iter().map(Into::into));
        self
    }

    /// Includes rows of a relation: see [`Selection::include`].
    pub fn include(mut self, relation: impl Into<String>, query: Selection) -> Lookup {
        self.included.add(relation.into(), query);
        self
    }

    /// Reads the row.
    pub fn row<T: DeserializeOwned>(&self, ctx: &Context) -> Outcome<T> {
        #[derive(Deserialize)]
        struct Found<T> {
            row: T,
        }
        self.operation().result(ctx).map(|found: Found<T>| found.row)
    }

    fn operation(&self) -> Operation {
        let include = match self.included.object() {
            Ok(include) => include,
            Err(why) => return Operation::failed("get", why),
        };
        let args = Args { from: &self.entity, id: Some(&self.id), select: &self.fields, include, ..Args::default() };
        Operation::new("get", args, Part::Row)
    }
}

impl Body for Lookup {
    fn content(self) -> Content {
        self.operation().content()
    }
}

/// What a row must be like.
#[derive(Clone, Debug)]
pub struct Condition(Outcome<Form>);

#[derive(Clone, Debug)]
enum Form {
    One(Value),
    All(Vec<Value>),
}

/// Compares a field; [`Selection::filter`] lists the operators. A value that is missing, such as
/// `None`, is an error with the code `invalid`: [`Null`](crate::Null) compares with null.
pub fn field(name: impl Into<String>, operator: &str, value: impl Serialize) -> Condition {
    let name = name.into();
    let is = match exact::check(&value) {
        Ok(Shape::Missing) => "is missing".into(),
        Ok(Shape::Other) => match serde_json::to_value(value) {
            Ok(value) => return Condition(Ok(Form::One(Value::from(vec![name.into(), operator.into(), value])))),
            Err(why) => format!("is no JSON ({})", why),
        },
        Err(Odd { path, what }) if path.is_empty() => format!("is {}", what),
        Err(Odd { path, what }) => format!("has {} at {}", what, path.trim_start_matches('.')),
    };
    let remedy = "check it before the query, or compare with Null";
    let why = format!("{}: the value of {} {}: {}", name, operator, is, remedy);
    Condition(Err(HostError::new(Code::Invalid, why)))
}

impl Condition {
    /// Makes a comparison by [`field`] with `=`, `startsWith` or `contains` one without regard
    /// to case, by the case folding of Unicode.
    pub fn ignore_case(mut self) -> Condition {
        if let Ok(Form::One(Value::Array(comparison))) = &mut self.0 {
            comparison.push("ignoreCase".into());
        }
        self
    }
}

/// Holds when all of the conditions do.
pub fn and(conditions: impl IntoIterator<Item = Condition>) -> Condition {
    let mut all = Conditions::default();
    conditions.into_iter().for_each(|condition| all.add(condition));
    Condition(match all.failed {
        Some(why) => Err(why),
        None => Ok(Form::All(all.forms)),
    })
}

/// Holds when one of the conditions does.
pub fn or(conditions: impl IntoIterator<Item = Condition>) -> Condition {
    word("or", conditions)
}

/// Holds when the condition does not.
pub fn not(condition: Condition) -> Condition {
    word("not", [condition])
}

fn word(word: &str, conditions: impl IntoIterator<Item = Condition>) -> Condition {
    let mut forms = vec![Value::from(word)];
    for condition in conditions {
        match condition.0 {
            Ok(Form::One(form)) => forms.push(form),
            Ok(Form::All(inner)) => forms.push(inner.into()),
            Err(why) => return Condition(Err(why)),
        }
    }
    Condition(Ok(Form::One(forms.into())))
}

/// Conditions that must all hold, of a query, a change or a removal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    forms: Vec<Value>,
    failed: Option<HostError>,
    /// Selects every row; without a condition it is required.
    pub(crate) every: bool,
}

impl Conditions {
    /// Adds a condition; one of [`and`] is taken apart.
    pub(crate) fn add(&mut self, condition: Condition) {
        match condition.0 {
            Ok(Form::One(form)) => self.forms.push(form),
            Ok(Form::All(forms)) => self.forms.extend(forms),
            Err(why) => self.failed = Some(why),
        }
    }

    /// The list for the host; none says nothing.
    pub(crate) fn list(&self) -> Outcome<Option<Vec<&Value>>> {
        match &self.failed {
            Some(why) => Err(why.clone()),
            None if self.forms.is_empty() && !self.every => Ok(None),
            None => Ok(Some(self.forms.iter().collect())),
        }
    }
}
