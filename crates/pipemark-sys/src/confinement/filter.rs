//! The filter of system calls: a program of classic BPF, which the kernel runs at each call (seccomp(2)).

use std::io;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, EPERM, SECCOMP_GET_ACTION_AVAIL,
    SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS, SECCOMP_SET_MODE_FILTER, SYS_clone, SYS_clone3,
    SYS_seccomp, c_long, sock_filter, sock_fprog,
};

use super::calls::{ALLOWED, CONDITIONAL, FIRST_UNKNOWN, NAMESPACES, OLDER};
use crate::result_of;

/// The processor whose calls the lists name: AUDIT_ARCH_* of linux/audit.h. 0 where there is no list.
const PROCESSOR: u32 = if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
    0xC000_003E
} else if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
    0xC000_00B7
} else {
    0
};

// Offsets in struct seccomp_data. An argument has 8 bytes, the lower half first.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// A refused call fails with EPERM.
const REFUSE: u32 = SECCOMP_RET_ERRNO | EPERM as u32;
/// The C library tries another call after this error.
const UNKNOWN: u32 = SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// Why filters can't be used, as a clause.
pub(super) fn obstacle() -> Option<&'static str> {
    let action = SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads one action from `action`, which lives during the call.
    let available = unsafe { libc::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0u32, &raw const action) };
    match (PROCESSOR, available) {
        (0, _) => Some("no list of this processor's system calls is known"),
        (_, 0) => None,
        _ => Some("the kernel has no filters of system calls (seccomp), or refuses them"),
    }
}

/// Installs the filter for the calling thread and what it starts. no_new_privs must be set.
pub(super) fn install() -> io::Result<()> {
    let mut steps = program();
    let length = u16::try_from(steps.len()).map_err(io::Error::other)?;
    let program = sock_fprog { len: length, filter: steps.as_mut_ptr() };
    // SAFETY: `program` points to `length` steps. Both live during the call, in which the kernel copies them.
    result_of(unsafe { libc::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0u32, &raw const program) }).map(drop)
}

fn program() -> Vec<sock_filter> {
    let mut steps = vec![load(ARCHITECTURE), if_equal(PROCESSOR, 1, 0), end(SECCOMP_RET_KILL_PROCESS), load(NUMBER)];
    for call in ALLOWED.iter().chain(OLDER) {
        steps.extend([if_equal(number(*call), 0, 1), end(SECCOMP_RET_ALLOW)]);
    }
    for conditional in CONDITIONAL {
        let allowed = conditional.values.iter().flat_map(|value| [if_equal(*value, 0, 1), end(SECCOMP_RET_ALLOW)]);
        let own = [load(ARGUMENTS + 8 * conditional.argument)].into_iter().chain(allowed).chain([end(REFUSE)]);
        let own: Vec<sock_filter> = own.collect();
        steps.push(if_equal(number(conditional.call), 0, own.len() as u8));
        steps.extend(own);
    }
    steps.extend([if_equal(number(SYS_clone), 0, 4), load(ARGUMENTS), jump(BPF_JSET, NAMESPACES, 1, 0)]);
    steps.extend([end(SECCOMP_RET_ALLOW), end(REFUSE)]);
    // The flags of clone3 are in memory, which a filter can't read.
    steps.extend([if_equal(number(SYS_clone3), 0, 1), end(UNKNOWN)]);
    steps.extend([jump(BPF_JGE, FIRST_UNKNOWN, 0, 1), end(UNKNOWN), end(REFUSE)]);
    steps
}

fn number(call: c_long) -> u32 {
    call as u32
}

/// Reads four bytes at an offset of the call's description.
fn load(offset: u32) -> sock_filter {
    sock_filter { code: (BPF_LD | BPF_W | BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

/// Skips `yes` steps if what was read equals `value`, otherwise `no` steps.
fn if_equal(value: u32, yes: u8, no: u8) -> sock_filter {
    jump(BPF_JEQ, value, yes, no)
}

fn jump(condition: u32, value: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter { code: (BPF_JMP | condition | BPF_K) as u16, jt: yes, jf: no, k: value }
}

/// Ends the filter with a decision.
fn end(decision: u32) -> sock_filter {
    sock_filter { code: (BPF_RET | BPF_K) as u16, jt: 0, jf: 0, k: decision }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decision of the filter, as the kernel's interpreter would find it.
    fn decision(call: u32, arguments: [u64; 6], architecture: u32) -> u32 {
        let mut data = [call.to_le_bytes(), architecture.to_le_bytes()].concat();
        data.extend([0; 8]);
        data.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
        let (steps, mut at, mut read) = (program(), 0, 0);
        loop {
            let step = steps[at];
            at += 1;
            let met = match u32::from(step.code) & 0xF0 {
                _ if u32::from(step.code) & 7 == BPF_RET => return step.k,
                _ if u32::from(step.code) & 7 == BPF_LD => {
                    let offset = step.k as usize;
                    read = u32::from_le_bytes(data[offset..offset + 4].try_into().unwrap());
                    continue;
                }
                BPF_JSET => read & step.k != 0,
                BPF_JGE => read >= step.k,
                _ => read == step.k,
            };
            at += usize::from(if met { step.jt } else { step.jf });
        }
    }

    fn of(call: c_long, first: u64, second: u64) -> u32 {
        decision(number(call), [first, second, 0, 0, 0, 0], PROCESSOR)
    }

    #[test]
    fn calls_are_decided_by_number_and_argument() {
        let allowed = SECCOMP_RET_ALLOW;
        assert!(ALLOWED.iter().chain(OLDER).all(|call| of(*call, 0, 0) == allowed));
        for call in [libc::SYS_socket, libc::SYS_fchmod, libc::SYS_ptrace, libc::SYS_io_uring_setup, libc::SYS_mount] {
            assert_eq!(of(call, 0, 0), REFUSE, "{call}");
        }
        assert_eq!(of(libc::SYS_fcntl, 1, libc::F_SETPIPE_SZ as u64), allowed);
        assert_eq!(of(libc::SYS_fcntl, 1, libc::F_SETLEASE as u64), REFUSE);
        assert_eq!((of(libc::SYS_ioctl, 1, 0x5401), of(libc::SYS_ioctl, 1, 0x5412)), (allowed, REFUSE));
        assert_eq!((of(libc::SYS_prlimit64, 0, 7), of(libc::SYS_prlimit64, 1, 7)), (allowed, REFUSE));
        assert_eq!((of(SYS_clone, 17, 0), of(SYS_clone, 0x1000_0011, 0)), (allowed, REFUSE));
        assert_eq!((of(SYS_clone3, 0, 0), of(9999, 0, 0)), (UNKNOWN, UNKNOWN));
        assert_eq!(decision(0, [0; 6], 1), SECCOMP_RET_KILL_PROCESS, "another processor's numbers");
    }
}
