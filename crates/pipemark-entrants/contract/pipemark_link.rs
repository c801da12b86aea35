// One end of a link that pipemark measures, in Rust. docs/outside-links.md describes the contract, version 1.
//
// Include this file as a module, and link with pipemark_link.c, compiled as the library `pipemark_link`.

use std::ffi::{CStr, CString, c_char, c_uint, c_void};
use std::{ptr, slice};

#[repr(C)]
struct Fields {
    block: usize,
    round_trips: bool,
    sender: bool,
    index: c_uint,
    last: bool,
    senders: c_uint,
    receivers: c_uint,
    wait: [c_char; 8],
    directory: [c_char; 256],
    name: [c_char; 64],
}

#[link(name = "pipemark_link")]
unsafe extern "C" {
    fn pm_new(role: *const c_char) -> *mut Fields;
    fn pm_option(link: *const Fields, name: *const c_char, otherwise: *const c_char) -> *const c_char;
    fn pm_bound(link: *mut Fields);
    fn pm_ready(link: *mut Fields);
    fn pm_next_block(link: *mut Fields, room: *mut c_void) -> *mut u8;
    fn pm_check(link: *mut Fields, data: *const c_void, length: usize) -> bool;
    fn pm_done(link: *mut Fields);
}

/// An end of a link.
pub struct Link(*mut Fields);

impl Link {
    /// Reads the assignment. `role` names the end in a program that is both ends, such as "receiver0".
    pub fn start(role: Option<&str>) -> Link {
        let role = role.map(|role| CString::new(role).expect("a role has no zero byte"));
        // SAFETY: the text lives during the call, which ends the program if it fails.
        Link(unsafe { pm_new(role.as_ref().map_or(ptr::null(), |role| role.as_ptr())) })
    }

    fn fields(&self) -> &Fields {
        // SAFETY: the memory is never freed, and begins with these fields.
        unsafe { &*self.0 }
    }

    pub fn block(&self) -> usize {
        self.fields().block
    }

    pub fn is_sender(&self) -> bool {
        self.fields().sender
    }

    pub fn round_trips(&self) -> bool {
        self.fields().round_trips
    }

    /// Whether the block of `next` is the end of the stream, which gets no reply.
    pub fn is_last(&self) -> bool {
        self.fields().last
    }

    pub fn index(&self) -> u32 {
        self.fields().index
    }

    pub fn counts(&self) -> (u32, u32) {
        (self.fields().senders, self.fields().receivers)
    }

    pub fn wait(&self) -> String {
        text(self.fields().wait.as_ptr())
    }

    pub fn directory(&self) -> String {
        text(self.fields().directory.as_ptr())
    }

    pub fn name(&self) -> String {
        text(self.fields().name.as_ptr())
    }

    /// The value of an option of the link; `None` without such an option.
    pub fn option(&self, name: &str) -> Option<String> {
        let name = CString::new(name).expect("an option has no zero byte");
        // SAFETY: both pointers are valid during the call.
        let value = unsafe { pm_option(self.0, name.as_ptr(), ptr::null()) };
        (!value.is_null()).then(|| text(value))
    }

    /// Says that this end exists, so that the other may connect to it.
    pub fn bound(&mut self) {
        // SAFETY: the link is valid.
        unsafe { pm_bound(self.0) }
    }

    /// Says that this end is connected, and waits until all ends are.
    pub fn ready(&mut self) {
        // SAFETY: the link is valid.
        unsafe { pm_ready(self.0) }
    }

    /// The next block to send or to return; `None` once all have been sent.
    #[inline]
    pub fn next(&mut self) -> Option<&mut [u8]> {
        // SAFETY: the link is valid, and the block belongs to it until the next call, which needs `&mut self`.
        let block = unsafe { pm_next_block(self.0, ptr::null_mut()) };
        // SAFETY: as above; a block has this length.
        (!block.is_null()).then(|| unsafe { slice::from_raw_parts_mut(block, self.block()) })
    }

    /// As `next`, but writes the block to `room`, which may be uninitialised. Returns false once all have been sent.
    ///
    /// # Safety
    /// A whole block can be written to `room`.
    #[inline]
    pub unsafe fn fill(&mut self, room: *mut u8) -> bool {
        // SAFETY: the link is valid, and the caller promises the room.
        !unsafe { pm_next_block(self.0, room.cast()) }.is_null()
    }

    /// Checks and counts a message, or any piece of a byte stream. False at the end of a stream of messages.
    #[inline]
    pub fn received(&mut self, data: &[u8]) -> bool {
        // SAFETY: the link and the bytes are valid.
        unsafe { pm_check(self.0, data.as_ptr().cast(), data.len()) }
    }

    /// Reports the results, and waits until all ends have. The sender of a byte stream closes its end before.
    pub fn done(&mut self) {
        // SAFETY: the link is valid.
        unsafe { pm_done(self.0) }
    }
}

fn text(from: *const c_char) -> String {
    // SAFETY: the C code ends all its text with a zero byte.
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}
