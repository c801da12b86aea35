use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind::PermissionDenied;
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// What a confined thread tried, with what came of it.
type Attempts = Vec<(&'static str, io::Result<()>)>;

/// Runs `attempt` in a confined thread, with a directory outside that has a file, and the one that may be written.
fn confined(attempt: impl FnOnce(PathBuf, PathBuf) -> Attempts + Send + 'static) -> Option<Attempts> {
    if let Some(obstacle) = obstacle() {
        eprintln!("skipped: {obstacle}");
        return None;
    }
    let root =
        std::env::temp_dir().join(format!("pipemark-confinement-{}-{:?}", std::process::id(), thread::current().id()));
    let [outside, inside] = ["outside", "inside"].map(|name| root.join(name));
    [&outside, &inside].into_iter().for_each(|path| fs::create_dir_all(path).unwrap());
    fs::write(outside.join("file"), "kept").unwrap();
    let ours = (outside.clone(), inside.clone());
    let attempts = thread::spawn(move || {
        confine(&ours.1).unwrap();
        attempt(ours.0, ours.1)
    });
    let attempts = attempts.join().unwrap();
    let names: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!((fs::read_to_string(outside.join("file")).unwrap().as_str(), names), ("kept", vec!["file".into()]));
    fs::remove_dir_all(root).unwrap();
    Some(attempts)
}

#[test]
fn nothing_outside_can_be_changed() {
    let attempts = confined(|outside, _| {
        let file = outside.join("file");
        let open = |options: &mut OpenOptions, name: &str| options.open(outside.join(name)).map(drop);
        vec![
            ("write", open(OpenOptions::new().write(true), "file")),
            ("append", open(OpenOptions::new().append(true), "file")),
            ("truncate", open(OpenOptions::new().write(true).truncate(true), "file")),
            ("create", open(OpenOptions::new().write(true).create(true), "new")),
            ("unlink", fs::remove_file(&file)),
            ("rename", fs::rename(&file, outside.join("new"))),
            ("link", fs::hard_link(&file, outside.join("new"))),
            ("symbolic link", symlink(&file, outside.join("new"))),
            ("directory", fs::create_dir(outside.join("new"))),
            ("mode", fs::set_permissions(&file, PermissionsExt::from_mode(0o777))),
            ("mode of an open file", File::open(&file).unwrap().set_permissions(PermissionsExt::from_mode(0o777))),
            ("owner", std::os::unix::fs::chown(&file, Some(1), None)),
            ("times", File::open(&file).unwrap().set_modified(std::time::UNIX_EPOCH)),
            ("TCP", TcpStream::connect("127.0.0.1:1").map(drop)),
            ("UDP", UdpSocket::bind("127.0.0.1:0").map(drop)),
            ("Unix socket", UnixStream::connect("/nowhere").map(drop)),
            ("signal", kill_process(Pid::from_raw(1).unwrap(), Signal::CONT).map_err(io::Error::from)),
            ("memory of a process", File::open("/proc/1/mem").map(drop)),
            ("kernel", OpenOptions::new().write(true).open("/proc/self/oom_score_adj").map(drop)),
        ]
    });
    for (what, result) in attempts.unwrap_or_default() {
        assert_eq!(result.map_err(|error| error.kind()), Err(PermissionDenied), "{what}");
    }
}

#[test]
fn programs_can_still_read_compute_and_keep_temporary_files() {
    let attempts = confined(|outside, inside| {
        let script = "sort /proc/self/status >/dev/null && (sleep 0.01 & wait) && cat \"$1\" >\"$2\" && rm \"$2\"";
        let mut run = Command::new("sh");
        run.env("TMPDIR", &inside).args(["-ec", script, "sh"]).arg(outside.join("file")).arg(inside.join("copy"));
        let ended = run.status();
        vec![(
            "programs",
            ended.and_then(|status| if status.success() { Ok(()) } else { Err(io::ErrorKind::Other.into()) }),
        )]
    });
    for (what, result) in attempts.unwrap_or_default() {
        assert!(result.is_ok(), "{what}: {result:?}");
    }
}
