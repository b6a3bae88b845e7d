//! Operations of the runner, as values.

use crate::abi::Code;
use crate::exact;
use crate::host::{Host, Part};
use crate::host_error::{HostError, Outcome};
use serde::de::DeserializeOwned;
use serde::Serialize;

/// An operation with its arguments, not run yet. As the body of an answer, the runner runs it
/// and sends its result directly.
#[derive(Clone, Debug)]
pub struct Operation {
    op: String,
    /// JSON, or the error of writing it.
    args: Outcome<Vec<u8>>,
    part: Part,
}

/// An operation by its name, with the arguments that the guest ABI describes.
///
/// ```
/// # use runner_sdk::*;
/// # fn handler(ctx: &Context, _: &Request) -> Result {
/// let key: ApiKey = call("apiKeys.get", serde_json::json!({"id": "key_1"})).result(ctx)?;
/// # Ok(ok(key))
/// # }
/// ```
pub fn call(op: impl Into<String>, args: impl Serialize) -> Operation {
    let op = op.into();
    match check(&op, "", &args) {
        Ok(()) => Operation::new(op, args, Part::All),
        Err(why) => Operation::failed(&op, why),
    }
}

/// Refuses a member of the arguments that JSON has no form for.
pub(crate) fn check(op: &str, member: &str, value: &impl Serialize) -> Outcome<()> {
    exact::check(value).map(drop).map_err(|odd| {
        let place = format!("{}{}", member, odd.path);
        let why = format!("{}: {} is {}", op, place.trim_start_matches('.'), odd.what);
        HostError::new(Code::Invalid, format!("{}: check it first, or use None on purpose", why)).of(op)
    })
}

impl Operation {
    pub(crate) fn new(op: impl Into<String>, args: impl Serialize, part: Part) -> Operation {
        let op = op.into();
        let args = serde_json::to_vec(&args)
            .map_err(|why| HostError::new(Code::Invalid, format!("write the arguments of {}: {}", op, why)));
        Operation { op, args, part }
    }

    pub(crate) fn failed(op: &str, why: HostError) -> Operation {
        Operation { op: op.into(), args: Err(why), part: Part::All }
    }

    /// Runs it on a host and reads the result.
    pub(crate) fn result_on<T: DeserializeOwned>(&self, host: &dyn Host) -> Outcome<T> {
        self.run_on(host)?;
        decode(&self.op, &host.result().map_err(|why| why.of(&self.op))?)
    }

    /// Runs it on a host and returns which part of the result is the body of an answer.
    pub(crate) fn run_on(&self, host: &dyn Host) -> Outcome<Part> {
        match &self.args {
            Ok(args) => host.call(&self.op, args).map(|_| self.part).map_err(|why| why.of(&self.op)),
            Err(why) => Err(why.clone()),
        }
    }
}

pub(crate) fn decode<T: DeserializeOwned>(op: &str, result: &[u8]) -> Outcome<T> {
    serde_json::from_slice(result)
        .map_err(|why| HostError::new(Code::Internal, format!("read the result of {}: {}", op, why)))
}
