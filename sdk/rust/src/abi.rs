// Code generated from hostabi/abi by go generate; DO NOT EDIT.

/// Why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// `not_found`: absent, or hidden from the caller
    NotFound,
    /// `invalid`: argument, pointer or JSON
    Invalid,
    /// `denied`: grant, policy, not declared, not allowed here
    Denied,
    /// `conflict`: unique, state
    Conflict,
    /// `too_large`: over a size limit
    TooLarge,
    /// `limit`: a budget of the request is spent
    Limit,
    /// `unavailable`: store, network
    Unavailable,
    /// `deadline`: the operation's own time
    Deadline,
    /// `internal`: an error of the host; its log has the cause
    Internal,
}

impl Code {
    /// The code's name in the guest ABI.
    pub const fn name(self) -> &'static str {
        match self {
            Code::NotFound => "not_found",
            Code::Invalid => "invalid",
            Code::Denied => "denied",
            Code::Conflict => "conflict",
            Code::TooLarge => "too_large",
            Code::Limit => "limit",
            Code::Unavailable => "unavailable",
            Code::Deadline => "deadline",
            Code::Internal => "internal",
        }
    }

    /// The code of a failed host call's number; one that this SDK does not know is internal.
    #[cfg(target_arch = "wasm32")]
    pub(crate) const fn from_errno(n: i32) -> Code {
        match n {
            -1 => Code::NotFound,
            -2 => Code::Invalid,
            -3 => Code::Denied,
            -4 => Code::Conflict,
            -5 => Code::TooLarge,
            -6 => Code::Limit,
            -7 => Code::Unavailable,
            -8 => Code::Deadline,
            _ => Code::Internal,
        }
    }

    /// The code of a name; one that this SDK does not know is internal.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn from_name(name: &str) -> Code {
        match name {
            "not_found" => Code::NotFound,
            "invalid" => Code::Invalid,
            "denied" => Code::Denied,
            "conflict" => Code::Conflict,
            "too_large" => Code::TooLarge,
            "limit" => Code::Limit,
            "unavailable" => Code::Unavailable,
            "deadline" => Code::Deadline,
            _ => Code::Internal,
        }
    }
}

#[cfg(target_arch = "wasm32")]
#[allow(dead_code)]
pub(crate) mod imports {
    #[link(wasm_import_module = "runner")]
    extern "C" {
        pub(crate) fn request_method(buf: *mut u8, cap: usize) -> i32;
        pub(crate) fn request_path(buf: *mut u8, cap: usize) -> i32;
        pub(crate) fn request_param(name: *const u8, name_len: usize, buf: *mut u8, cap: usize) -> i32;
        pub(crate) fn request_query(name: *const u8, name_len: usize, buf: *mut u8, cap: usize) -> i32;
        pub(crate) fn request_header(name: *const u8, name_len: usize, buf: *mut u8, cap: usize) -> i32;
        pub(crate) fn request_pairs(kind: u32, buf: *mut u8, cap: usize) -> i32;
        pub(crate) fn request_body(offset: u32, buf: *mut u8, cap: usize) -> i32;
        pub(crate) fn request_read(buf: *mut u8, cap: usize) -> i32;
        pub(crate) fn context(buf: *mut u8, cap: usize) -> i32;
        pub(crate) fn response_header(name: *const u8, name_len: usize, value: *const u8, value_len: usize) -> i32;
        pub(crate) fn response_send(status: u32, body: *const u8, body_len: usize) -> i32;
        pub(crate) fn response_error(status: u32, code: *const u8, code_len: usize, message: *const u8, message_len: usize) -> i32;
        pub(crate) fn response_send_result(status: u32, part: u32) -> i32;
        pub(crate) fn response_begin(status: u32) -> i32;
        pub(crate) fn response_write(body: *const u8, body_len: usize) -> i32;
        pub(crate) fn call(op: *const u8, op_len: usize, args: *const u8, args_len: usize) -> i32;
        pub(crate) fn call_result(offset: u32, buf: *mut u8, cap: usize) -> i32;
        pub(crate) fn call_start(op: *const u8, op_len: usize, args: *const u8, args_len: usize) -> i32;
        pub(crate) fn call_wait() -> i32;
        pub(crate) fn call_take(ticket: u32) -> i32;
        pub(crate) fn request_next(handlers: *const u8, handlers_len: usize) -> i32;
        pub(crate) fn keep_writes();
        pub(crate) fn log(level: u32, text: *const u8, text_len: usize);
    }
}
