//! Files: those of rows, those that a client has uploaded, and those that the handler makes.

use crate::abi::Code;
use crate::context::Context;
use crate::crypto::{data, unbase64, Data};
use crate::host_error::{HostError, Outcome};
use crate::operation::call;
use crate::response::Response;
use crate::time::amount;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// How many bytes one operation reads.
const READ_PART: u64 = 1 << 20;
/// How many bytes one operation writes. Text may have characters that JSON escapes with six bytes each, and the arguments of an operation have at most 2 MiB.
const WRITE_PART: usize = 320 << 10;

/// A file: the value of a field of type `file`, or one that the request has uploaded or made.
///
/// A row gets it when it is inserted or updated with the file. Only the id counts then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    pub id: String,
    /// A text for people, never a path.
    pub name: String,
    /// The media type without parameters. It is found from the bytes.
    #[serde(rename = "type")]
    pub media_type: String,
    /// In bytes.
    pub size: u64,
    /// The digest of the bytes, in hexadecimal digits.
    pub sha256: String,
}

/// How a file is sent. The default is the status 200, and what the runner finds right for the type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendOptions {
    /// The status of the answer; without one 200.
    pub status: Option<u16>,
    /// `inline`, which shows the file in the browser, or `attachment`, which saves it. Without one, types are shown that a
    /// browser shows without running them, such as pictures.
    pub disposition: Option<String>,
    /// Replaces the name of the file.
    pub name: Option<String>,
    /// The Cache-Control of the answer; without one that of the route.
    pub cache: Option<String>,
}

/// Answers with a file, or the part of it that the request asks for. Its bytes do not come to the handler. What the handler has
/// written is committed first. Only the answer to a request can be a file.
pub fn send_file(file: &StoredFile, options: SendOptions) -> Response {
    let mut args = serde_json::Map::new();
    args.insert("id".into(), file.id.as_str().into());
    let texts = [("disposition", options.disposition), ("name", options.name), ("cache", options.cache)];
    for (name, text) in texts {
        if let Some(text) = text {
            args.insert(name.into(), text.into());
        }
    }
    Response::of_file(options.status.unwrap_or(200), args)
}

/// What a signed link does. The default is what the runner finds right for the type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkOptions {
    /// `inline` or `attachment`, as in [`SendOptions`].
    pub disposition: Option<String>,
    /// Replaces the name of the file.
    pub name: Option<String>,
}

/// A file of an [`Upload`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct UploadedFile {
    #[serde(flatten)]
    pub file: StoredFile,
    /// The name of its field; empty for a body that is one file.
    pub field: String,
    /// The media type that the client has declared; empty: none.
    pub declared: String,
}

/// The body of a request on a route with `upload: on`. Its files are gone after the request unless a row that is committed
/// has them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Upload {
    /// The names and texts of the fields, in the order of the body.
    pub fields: Vec<(String, String)>,
    pub files: Vec<UploadedFile>,
}

impl Upload {
    /// The first text of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The first file of that field. The name of a body that is one file is empty.
    pub fn file(&self, field: &str) -> Option<&StoredFile> {
        self.files.iter().find(|f| f.field == field).map(|f| &f.file)
    }
}

#[derive(Serialize)]
struct About<'a> {
    name: &'a str,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    media_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Data<'a>>,
}

impl Context<'_> {
    /// What the client has uploaded. On a route without `upload: on` it is an error.
    pub fn upload(&self) -> Outcome<Upload> {
        #[derive(Serialize)]
        struct None {}
        call("request.form", None {}).result(self)
    }

    /// Makes a file, which a row can have. It is gone after the request unless a row that is committed has it.
    ///
    /// The type is found from the bytes; `media_type` names that of a text or of unknown bytes more closely.
    ///
    /// ```
    /// # use runner_sdk::*;
    /// # fn handler(ctx: &Context, _: &Request) -> Result {
    /// let notes = ctx.create_file("notes.md", Some("text/markdown"), "# Notes")?;
    /// # Ok(ok(notes))
    /// # }
    /// ```
    pub fn create_file(&self, name: &str, media_type: Option<&str>, contents: impl AsRef<[u8]>) -> Outcome<StoredFile> {
        let contents = contents.as_ref();
        if contents.len() <= WRITE_PART {
            return call("file.create", About { name, media_type, data: Some(data(contents)) }).result(self);
        }
        #[derive(Serialize, Deserialize)]
        struct Open {
            writer: u64,
        }
        #[derive(Serialize)]
        struct Part<'a> {
            writer: u64,
            data: Data<'a>,
        }
        let open: Open = call("file.open", About { name, media_type, data: None }).result(self)?;
        for part in contents.chunks(WRITE_PART) {
            let _: IgnoredAny = call("file.write", Part { writer: open.writer, data: data(part) }).result(self)?;
        }
        call("file.end", open).result(self)
    }

    /// All bytes of a file.
    pub fn read_file(&self, file: &StoredFile) -> Outcome<Vec<u8>> {
        #[derive(Serialize)]
        struct Args<'a> {
            id: &'a str,
            offset: u64,
            length: u64,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Octets {
            Text(String),
            Binary { base64: String },
        }
        #[derive(Deserialize)]
        struct Part {
            data: Octets,
        }
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < file.size {
            let part: Part =
                call("file.read", Args { id: &file.id, offset: bytes.len() as u64, length: READ_PART }).result(self)?;
            let read = match part.data {
                Octets::Text(text) => text.into_bytes(),
                Octets::Binary { base64 } => unbase64(&base64).unwrap_or_default(),
            };
            if read.is_empty() {
                return Err(HostError::new(Code::Internal, "the file ends early"));
            }
            bytes.extend(read);
        }
        Ok(bytes)
    }

    /// Makes a link to the file of a row, which works without credentials until it expires, for as long as the row has this
    /// file. It expires after whole seconds, at most seven days. The link is a path of this app, such as `/_files/…`.
    ///
    /// ```
    /// # use runner_sdk::*;
    /// # use std::time::Duration;
    /// # fn handler(ctx: &Context, photo: &StoredFile) -> Result {
    /// let link = ctx.sign_file(photo, Duration::from_secs(600), LinkOptions::default())?;
    /// # Ok(ok(link))
    /// # }
    /// ```
    pub fn sign_file(&self, file: &StoredFile, expires: Duration, options: LinkOptions) -> Outcome<String> {
        #[derive(Serialize)]
        struct Args<'a> {
            id: &'a str,
            expires: Value,
            #[serde(skip_serializing_if = "Option::is_none")]
            disposition: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            name: Option<String>,
        }
        #[derive(Deserialize)]
        struct Link {
            url: String,
        }
        let LinkOptions { disposition, name } = options;
        let link: Link = call("file.sign", Args { id: &file.id, expires: amount(expires), disposition, name }).result(self)?;
        Ok(link.url)
    }
}
