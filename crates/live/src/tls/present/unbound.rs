//! What BoringSSL can do and its Rust binding does not say safely: NPN, False Start, record sizes, resumption, handshakes that wait.
//!
//! Every block says why it holds; nothing here keeps a pointer past its call but [`advertise`] and [`select`], whose
//! list is never freed.
#![allow(unsafe_code, reason = "calls of a C library that its binding leaves raw")]

use std::ffi::{c_int, c_uint, c_void};

use boring::error::ErrorStack;
use boring::ssl::{Ssl, SslContextBuilder, SslRef, SslSession};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;

/// The list at an address that stays: connections may outlive the context's owner, and a process makes few contexts, of
/// some dozen bytes each.
fn keep(list: Vec<u8>) -> *mut c_void {
    std::ptr::from_mut(Box::leak(Box::new(list))).cast()
}

/// A server's NPN: offers `list` to clients that ask.
pub fn advertise(context: &mut SslContextBuilder, list: Vec<u8>) {
    unsafe extern "C" fn offer(
        _: *mut ffi::SSL,
        out: *mut *const u8,
        out_len: *mut c_uint,
        list: *mut c_void,
    ) -> c_int {
        // SAFETY: `list` is what `keep` gave; the library gives valid places for the answer.
        unsafe {
            let list = &*list.cast::<Vec<u8>>();
            *out = list.as_ptr();
            *out_len = list.len() as c_uint;
        }
        ffi::SSL_TLSEXT_ERR_OK
    }
    let list = keep(list);
    // SAFETY: the context is alive, and the list stays.
    unsafe { ffi::SSL_CTX_set_next_protos_advertised_cb(context.as_ptr(), Some(offer), list) };
}

/// A client's NPN: chooses the first of `list` that the server offers, and the last of `list` if it offers none
/// (draft-agl-tls-nextprotoneg-04 §4: a client may choose what was not offered).
pub fn select(context: &mut SslContextBuilder, list: Vec<u8>) {
    unsafe extern "C" fn choose(
        _: *mut ffi::SSL,
        out: *mut *mut u8,
        out_len: *mut u8,
        theirs: *const u8,
        theirs_len: c_uint,
        list: *mut c_void,
    ) -> c_int {
        // SAFETY: `list` is what `keep` gave; the server's offer and the places for the
        // answer are valid during the call, and the library copies the answer before it returns.
        unsafe {
            let list = &*list.cast::<Vec<u8>>();
            let theirs = match theirs_len {
                0 => &[][..],
                len => std::slice::from_raw_parts(theirs, len as usize),
            };
            let Some(name) = super::names(list)
                .find(|ours| super::names(theirs).any(|name| name == *ours))
                .or(super::names(list).last())
            else {
                return ffi::SSL_TLSEXT_ERR_NOACK;
            };
            *out = name.as_ptr().cast_mut();
            *out_len = name.len() as u8;
        }
        ffi::SSL_TLSEXT_ERR_OK
    }
    let list = keep(list);
    // SAFETY: the context is alive, and the list stays.
    unsafe { ffi::SSL_CTX_set_next_proto_select_cb(context.as_ptr(), Some(choose), list) };
}

/// What NPN agreed on.
pub fn negotiated(ssl: &SslRef) -> Option<&[u8]> {
    let (mut name, mut len) = (std::ptr::null(), 0);
    // SAFETY: the connection is alive; the name belongs to it, and changes only with the handshake, which needs `&mut`.
    unsafe {
        ffi::SSL_get0_next_proto_negotiated(ssl.as_ptr(), &mut name, &mut len);
        (len > 0).then(|| std::slice::from_raw_parts(name, len as usize))
    }
}

/// Lets clients send with their Finished (RFC 7918).
pub fn enable_false_start(context: &mut SslContextBuilder) {
    // SAFETY: the context is alive.
    unsafe { ffi::SSL_CTX_set_mode(context.as_ptr(), ffi::SSL_MODE_ENABLE_FALSE_START as u32) };
}

/// Whether the handshake goes on beneath data already allowed.
pub fn in_false_start(ssl: &SslRef) -> bool {
    // SAFETY: the connection is alive.
    unsafe { ffi::SSL_in_false_start(ssl.as_ptr()) != 0 }
}

/// Bytes of plaintext a record holds at most; 512 to 16384.
pub fn set_max_send_fragment(ssl: &mut SslRef, size: u16) {
    // SAFETY: the connection is alive.
    unsafe { ffi::SSL_set_max_send_fragment(ssl.as_ptr(), usize::from(size)) };
}

/// Has a client's handshake stop at the server's certificate until this is taken back, and the library's own check takes its place.
pub fn hold_certificate(ssl: &mut SslRef, on: bool) {
    unsafe extern "C" fn later(_: *mut ffi::SSL, _: *mut u8) -> ffi::ssl_verify_result_t {
        ffi::ssl_verify_result_t::ssl_verify_retry
    }
    type Verify = unsafe extern "C" fn(*mut ffi::SSL, *mut u8) -> ffi::ssl_verify_result_t;
    // SAFETY: the connection is alive; the callback touches nothing.
    unsafe {
        let mode = ffi::SSL_get_verify_mode(ssl.as_ptr());
        ffi::SSL_set_custom_verify(ssl.as_ptr(), mode, on.then_some(later as Verify));
    }
}

/// Sends a server's tickets of TLS 1.3, which the library else keeps until there is data to go with them. If the socket takes none, they
/// go with the data.
pub fn flush_tickets(ssl: &mut SslRef) {
    // SAFETY: the connection is alive; no byte is read from nowhere.
    unsafe { ffi::SSL_write(ssl.as_ptr(), std::ptr::null(), 0) };
}

/// Offers to resume a session, which came from a connection of the same context.
pub fn resume(ssl: &mut Ssl, session: &SslSession) -> Result<(), ErrorStack> {
    // SAFETY: a connector hands out only sessions of its own context, and makes connections of no other.
    unsafe { ssl.set_session(session) }
}
