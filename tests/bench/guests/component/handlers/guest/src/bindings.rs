//! The bindings of runner:app that the handlers use, as wit-bindgen generates them: values are converted as the canonical
//! ABI of the component model says.

use serde::Serialize;
use std::alloc::{alloc, handle_alloc_error, realloc, Layout};
use std::mem::MaybeUninit;

#[export_name = "cabi_realloc"]
unsafe extern "C" fn cabi_realloc(old: *mut u8, old_size: usize, align: usize, size: usize) -> *mut u8 {
    let layout = Layout::from_size_align_unchecked(size, align);
    let at = match (old_size, size) {
        (_, 0) => return align as *mut u8,
        (0, _) => alloc(layout),
        _ => realloc(old, Layout::from_size_align_unchecked(old_size, align), size),
    };
    if at.is_null() {
        handle_alloc_error(layout);
    }
    at
}

/// A pair of texts, with address and length of each.
#[repr(C)]
pub struct Pair(*mut u8, usize, *mut u8, usize);

impl Drop for Pair {
    fn drop(&mut self) {
        unsafe { drop((list(self.0, self.1), list(self.2, self.3))) }
    }
}

/// The list that the host has allocated with cabi_realloc.
pub unsafe fn list<T>(at: *mut T, length: usize) -> Vec<T> {
    Vec::from_raw_parts(at, length, length)
}

/// An answer without headers, in memory as result<response, error>.
#[repr(C)]
pub struct Response {
    failed: u32,
    status: u32,
    headers: (usize, usize),
    body_case: u32,
    body: (*mut u8, usize),
    unused: MaybeUninit<[u32; 2]>,
}

impl Drop for Response {
    fn drop(&mut self) {
        unsafe { drop(list(self.body.0, self.body.1)) }
    }
}

/// Exports a function of the body as a handler.
macro_rules! handler {
    ($name:literal, $post_return:literal, $function:expr) => {
        const _: () = {
            use crate::bindings::{list, Pair};

            #[export_name = $name]
            #[allow(clippy::too_many_arguments)]
            unsafe extern "C" fn run(
                method: *mut u8, method_length: usize, path: *mut u8, path_length: usize, params: *mut Pair, params_length: usize,
                query: *mut Pair, query_length: usize, headers: *mut Pair, headers_length: usize, body: *mut u8, body_length: usize,
            ) -> *mut Response {
                drop((list(method, method_length), list(path, path_length)));
                drop((list(params, params_length), list(query, query_length), list(headers, headers_length)));
                let function: fn(&[u8]) -> Response = $function;
                Box::into_raw(Box::new(function(&list(body, body_length))))
            }

            #[export_name = $post_return]
            unsafe extern "C" fn post_return(result: *mut Response) {
                drop(Box::from_raw(result));
            }
        };
    };
}
pub(crate) use handler;

/// An answer with a body of JSON.
pub fn json(status: u16, value: &impl Serialize) -> Response {
    const TEXT: u32 = 1;
    let body = Box::leak(serde_json::to_vec(value).unwrap().into_boxed_slice());
    Response {
        failed: 0,
        status: status as u32,
        headers: (4, 0),
        body_case: TEXT,
        body: (body.as_mut_ptr(), body.len()),
        unused: MaybeUninit::uninit(),
    }
}

/// Inserts a row, and returns the result as JSON.
pub fn insert(args: &str) -> Vec<u8> {
    #[link(wasm_import_module = "runner:app/rows@1.0.0")]
    extern "C" {
        #[link_name = "insert"]
        fn call(args: *const u8, length: usize, result: *mut [usize; 7]);
    }
    let mut result = [0; 7];
    unsafe {
        call(args.as_ptr(), args.len(), &mut result);
        assert!(result[0] & 0xff == 0, "insert failed");
        list(result[1] as *mut u8, result[2])
    }
}
