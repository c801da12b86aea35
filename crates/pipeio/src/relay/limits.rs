//! The sizes of calls, buffers and pieces.

use std::time::Duration;

use rustix::pipe::SpliceFlags;

/// The maximum number of bytes requested in one call, below the kernel's limit of 2 GiB less a page.
pub(super) const MAX_BYTES: usize = 1 << 30;

/// The maximum number of bytes requested in one call while a handle reports progress.
pub(super) const MAX_OBSERVED_BYTES: usize = 16 << 20;

/// The maximum number of bytes requested in one call to a stream socket while a handle reports progress. Such a call
/// returns only when the socket has accepted all bytes.
pub(super) const MAX_OBSERVED_SOCKET_BYTES: usize = 64 << 10;

/// The maximum number of bytes in one write that may wait for the reader while a handle reports progress. Such a write
/// returns only when all bytes are written.
pub(super) const MAX_OBSERVED_WRITE: usize = 4 << 10;

/// No SPLICE_F_NONBLOCK: on blocking descriptors the call sleeps.
pub(super) const BLOCK: SpliceFlags = SpliceFlags::empty();

/// Size in bytes of the buffer for read and write. A larger buffer doesn't fit in the second-level cache of current
/// processors.
pub(super) const BUFFER: usize = 256 << 10;

/// The capacity in bytes that [`CapacityChange::Raise`](super::CapacityChange::Raise) requests: the default limit for unprivileged users (pipe-max-size).
pub(super) const RAISED: usize = 1 << 20;

/// Pieces of at least this many bytes are spliced. Smaller pieces are copied, because in a pipe a page with few bytes
/// takes as much room as a full page.
pub(super) const LARGE_PIECE: usize = 32 << 10;

/// A piece is isolated if it arrives this long after the previous one. Polling for more then gains nothing, and
/// yielding the CPU to processes that compute would delay the next piece by their whole time slice.
pub(super) const ISOLATED: Duration = Duration::from_millis(2);
