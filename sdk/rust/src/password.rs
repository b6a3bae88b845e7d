//! Passwords, hashed and verified by the runner.

use crate::context::Context;
use crate::host_error::Outcome;
use crate::operation::call;
use serde::{Deserialize, Serialize};

/// What [`Context::verify_password`] finds out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordCheck {
    /// The hash is that of the password.
    pub valid: bool,
    /// It is valid, and has another algorithm or other parameters than new hashes. Store
    /// a new one.
    pub rehash: bool,
}

impl Context<'_> {
    /// A new hash of a password with Argon2id, as a PHC string:
    /// `$argon2id$v=19$m=19456,t=2,p=1$…`. The runner hashes a few passwords at the same
    /// time, and the handler waits; the time counts as CPU time of the request.
    pub fn hash_password(&self, password: &str) -> Outcome<String> {
        #[derive(Serialize)]
        struct Args<'a> {
            password: &'a str,
        }
        #[derive(Deserialize)]
        struct Hashed {
            hash: String,
        }
        call("password.hash", Args { password }).result(self).map(|hashed: Hashed| hashed.hash)
    }

    /// Compares a password with a hash of [`Context::hash_password`], or with one of bcrypt,
    /// scrypt or PBKDF2 as Django, passlib and others write them. `None` stands for a user
    /// who does not exist: it takes as long, and is not valid.
    pub fn verify_password(&self, password: &str, hash: Option<&str>) -> Outcome<PasswordCheck> {
        #[derive(Serialize)]
        struct Args<'a> {
            password: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            hash: Option<&'a str>,
        }
        call("password.verify", Args { password, hash }).result(self)
    }
}
