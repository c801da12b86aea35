//! The system calls of programs that only read, compute and write to their open descriptors. All others are refused: new
//! ones too, until they are listed here.

use libc::*;

/// Calls that are allowed whatever their arguments. Landlock decides about those that change files or send signals.
#[rustfmt::skip]
pub(super) const ALLOWED: &[c_long] = &[
    // Descriptors.
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_preadv2,
    SYS_pwritev2, SYS_close, SYS_close_range, SYS_lseek, SYS_openat, SYS_openat2, SYS_fstat, SYS_newfstatat, SYS_statx,
    SYS_dup, SYS_dup3, SYS_pipe2, SYS_fsync, SYS_fdatasync, SYS_ftruncate, SYS_fallocate, SYS_fadvise64, SYS_readahead,
    SYS_sendfile, SYS_splice, SYS_tee, SYS_vmsplice, SYS_copy_file_range, SYS_epoll_create1, SYS_epoll_ctl,
    SYS_epoll_pwait, SYS_epoll_pwait2, SYS_ppoll, SYS_pselect6, SYS_eventfd2, SYS_signalfd4, SYS_timerfd_create,
    SYS_timerfd_settime, SYS_timerfd_gettime,
    // Paths.
    SYS_statfs, SYS_fstatfs, SYS_faccessat, SYS_faccessat2, SYS_readlinkat, SYS_getdents64, SYS_getcwd, SYS_chdir,
    SYS_fchdir, SYS_unlinkat, SYS_umask, SYS_getxattr, SYS_lgetxattr, SYS_fgetxattr, SYS_listxattr, SYS_llistxattr,
    SYS_flistxattr,
    // Memory.
    SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk, SYS_mincore, SYS_msync, SYS_mlock, SYS_munlock,
    SYS_membarrier, SYS_get_mempolicy, SYS_set_mempolicy, SYS_mbind,
    // Processes and threads.
    SYS_execve, SYS_execveat, SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid, SYS_set_tid_address, SYS_set_robust_list,
    SYS_rseq, SYS_futex, SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_getparam, SYS_sched_getscheduler,
    SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_getpriority, SYS_getcpu, SYS_getpid, SYS_getppid,
    SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getgroups, SYS_getresuid, SYS_getresgid,
    SYS_getpgid, SYS_getsid, SYS_capget, SYS_uname, SYS_sysinfo, SYS_getrusage, SYS_times, SYS_getrlimit, SYS_setrlimit,
    SYS_getrandom, SYS_prctl, SYS_seccomp, SYS_landlock_create_ruleset, SYS_landlock_add_rule,
    SYS_landlock_restrict_self,
    // Signals and time.
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigsuspend, SYS_rt_sigpending, SYS_rt_sigtimedwait,
    SYS_sigaltstack, SYS_kill, SYS_tgkill, SYS_tkill, SYS_restart_syscall, SYS_clock_gettime, SYS_clock_getres,
    SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_getitimer, SYS_setitimer, SYS_timer_create,
    SYS_timer_settime, SYS_timer_gettime, SYS_timer_getoverrun, SYS_timer_delete,
];

/// Older calls that only some processors have.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
pub(super) const OLDER: &[c_long] = &[
    SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_dup2, SYS_pipe, SYS_poll, SYS_select, SYS_epoll_create,
    SYS_epoll_wait, SYS_eventfd, SYS_signalfd, SYS_fork, SYS_vfork, SYS_getdents, SYS_getpgrp, SYS_alarm, SYS_pause,
    SYS_time, SYS_unlink, SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OLDER: &[c_long] = &[];

/// A call that is allowed with some values of an argument.
pub(super) struct ConditionalCall {
    pub(super) call: c_long,
    /// The argument, counted from 0.
    pub(super) argument: u32,
    pub(super) values: &'static [u32],
}

pub(super) const CONDITIONAL: &[ConditionalCall] = &[
    // Neither the attributes of a file nor the state of a terminal are changed.
    ConditionalCall {
        call: SYS_ioctl,
        argument: 1,
        values: &[
            TCGETS as u32,
            TIOCGWINSZ as u32,
            TIOCGPGRP as u32,
            FIONREAD as u32,
            FIONBIO as u32,
            FIOCLEX as u32,
            FIONCLEX as u32,
        ],
    },
    // No locks, leases and notifications, which other processes would notice.
    ConditionalCall {
        call: SYS_fcntl,
        argument: 1,
        values: &[
            F_DUPFD as u32,
            F_GETFD as u32,
            F_SETFD as u32,
            F_GETFL as u32,
            F_SETFL as u32,
            F_DUPFD_CLOEXEC as u32,
            F_GETPIPE_SZ as u32,
            F_SETPIPE_SZ as u32,
        ],
    },
    // Of this process only.
    ConditionalCall { call: SYS_prlimit64, argument: 0, values: &[0] },
    ConditionalCall { call: SYS_sched_setaffinity, argument: 0, values: &[0] },
];

/// The flags of clone(2) that create namespaces.
pub(super) const NAMESPACES: u32 =
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET) as u32;

/// The first number that no system call had when this list was made (Linux 6.18).
pub(super) const FIRST_UNKNOWN: u32 = 470;
