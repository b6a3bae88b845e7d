//! Values as JSON without silent changes: serde_json writes null for a float that is not finite,
//! and for `None`, which in a condition would find other rows.

use serde::ser::{self, Serialize, Serializer};
use std::fmt;

/// The null of a condition, with `=` and `!=`:
///
/// ```
/// # use runner_sdk::*;
/// # fn handler(ctx: &Context, _: &Request) -> Result {
/// let unpaid = query("Order").filter("paidAt", "=", Null).count(ctx)?;
/// # Ok(ok(unpaid))
/// # }
/// ```
///
/// Any other value that is null in JSON, such as `None`, is taken for one that is missing. In
/// the values of [`insert`](crate::insert) and [`update`](crate::update), `None` is null too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Null;

const NULL: &str = "runner_sdk::Null";

impl Serialize for Null {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_unit_struct(NULL)
    }
}

/// What a value is in JSON.
#[derive(PartialEq, Eq)]
pub(crate) enum Shape {
    /// Null, but not by [`Null`].
    Missing,
    Other,
}

/// Checks a value; the error is its first part that JSON has no form for.
pub(crate) fn check(value: &impl Serialize) -> Result<Shape, Odd> {
    value.serialize(Walk)
}

/// A part of a value that JSON has no form for.
#[derive(Debug)]
pub(crate) struct Odd {
    /// As `.lines[2].price`.
    pub(crate) path: String,
    pub(crate) what: String,
}

impl Odd {
    fn new(what: impl fmt::Display) -> Odd {
        Odd { path: String::new(), what: what.to_string() }
    }

    fn within(mut self, name: &str) -> Odd {
        self.path.insert_str(0, name);
        self
    }

    fn member(self, name: impl fmt::Display) -> Odd {
        self.within(&format!(".{}", name))
    }
}

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Odd {}

impl ser::Error for Odd {
    fn custom<T: fmt::Display>(why: T) -> Odd {
        Odd::new(format_args!("no JSON ({})", why))
    }
}

/// A serializer that writes nothing.
struct Walk;

type Checked<T = Shape> = Result<T, Odd>;

fn finite(n: f64) -> Checked {
    if n.is_finite() {
        Ok(Shape::Other)
    } else {
        Err(Odd::new(n))
    }
}

macro_rules! plain {
    ($($method:ident: $type:ty),+ $(,)?) => {
        $(fn $method(self, _: $type) -> Checked {
            Ok(Shape::Other)
        })+
    };
}

impl Serializer for Walk {
    type Ok = Shape;
    type Error = Odd;
    type SerializeSeq = Parts;
    type SerializeTuple = Parts;
    type SerializeTupleStruct = Parts;
    type SerializeTupleVariant = Parts;
    type SerializeMap = Parts;
    type SerializeStruct = Parts;
    type SerializeStructVariant = Parts;

    plain!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
    );

    fn serialize_f32(self, n: f32) -> Checked {
        finite(n.into())
    }

    fn serialize_f64(self, n: f64) -> Checked {
        finite(n)
    }

    fn serialize_none(self) -> Checked {
        Ok(Shape::Missing)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Checked {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Checked {
        Ok(Shape::Missing)
    }

    fn serialize_unit_struct(self, name: &'static str) -> Checked {
        Ok(if name == NULL { Shape::Other } else { Shape::Missing })
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Checked {
        Ok(Shape::Other)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Checked {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Checked {
        value.serialize(self).map_err(|odd| odd.member(variant)).map(|_| Shape::Other)
    }

    fn serialize_seq(self, _: Option<usize>) -> Checked<Parts> {
        Ok(Parts::default())
    }

    fn serialize_tuple(self, _: usize) -> Checked<Parts> {
        Ok(Parts::default())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Checked<Parts> {
        Ok(Parts::default())
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Checked<Parts> {
        Ok(Parts::default())
    }

    fn serialize_map(self, _: Option<usize>) -> Checked<Parts> {
        Ok(Parts::default())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Checked<Parts> {
        Ok(Parts::default())
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Checked<Parts> {
        Ok(Parts::default())
    }
}

/// The items of a list, or the members of an object.
#[derive(Default)]
struct Parts {
    passed: usize,
    key: String,
}

impl Parts {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Checked<()> {
        let at = self.passed;
        self.passed += 1;
        value.serialize(Walk).map_err(|odd| odd.within(&format!("[{}]", at))).map(drop)
    }
}

fn member<T: Serialize + ?Sized>(name: &str, value: &T) -> Checked<()> {
    value.serialize(Walk).map_err(|odd| odd.member(name)).map(drop)
}

fn name_of<K: Serialize + ?Sized>(key: &K) -> String {
    match serde_json::to_value(key) {
        Ok(serde_json::Value::String(name)) => name,
        other => other.unwrap_or_default().to_string(),
    }
}

macro_rules! parts {
    ($($of:ident: $method:ident),+ $(,)?) => {
        $(impl ser::$of for Parts {
            type Ok = Shape;
            type Error = Odd;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Checked<()> {
                self.item(value)
            }

            fn end(self) -> Checked {
                Ok(Shape::Other)
            }
        })+
    };
}

parts!(
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
);

macro_rules! fields {
    ($($of:ident),+ $(,)?) => {
        $(impl ser::$of for Parts {
            type Ok = Shape;
            type Error = Odd;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Checked<()> {
                member(name, value)
            }

            fn end(self) -> Checked {
                Ok(Shape::Other)
            }
        })+
    };
}

fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Parts {
    type Ok = Shape;
    type Error = Odd;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Checked<()> {
        self.key = name_of(key);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Checked<()> {
        member(&self.key, value)
    }

    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(&mut self, key: &K, value: &V) -> Checked<()> {
        value.serialize(Walk).map_err(|odd| odd.member(name_of(key))).map(drop)
    }

    fn end(self) -> Checked {
        Ok(Shape::Other)
    }
}
