//! Serves the latest text by HTTP on a UNIX socket that only this user may open.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pipemark_console::ExitError;
use pipemark_model::neutral;
use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

/// The longest time that a client may take, so that it can't keep others waiting for ever.
const CLIENT_TIME: Duration = Duration::from_secs(2);

/// The longest request.
const MAX_REQUEST: usize = 8 << 10;

/// Connections that wait.
const BACKLOG: i32 = 16;

/// A socket that is removed when dropped.
pub(super) struct MetricsSocket {
    path: PathBuf,
    /// Device and inode, so that a socket that replaced it isn't removed.
    identity: Option<(u64, u64)>,
    text: Arc<Mutex<Arc<str>>>,
}

impl MetricsSocket {
    /// Opens the socket with mode 0600, and serves it from now on. A socket that nobody serves any more is replaced.
    ///
    /// # Errors
    /// If the path is another file, or another process serves it, or it can't be created.
    pub(super) fn open(path: &Path) -> Result<MetricsSocket, ExitError> {
        let failed = |error: &dyn std::fmt::Display| {
            ExitError::failed(format_args!(
                "cannot serve the OpenMetrics on the socket {}: {error}",
                neutral(&path.to_string_lossy())
            ))
        };
        if path.as_os_str().is_empty() {
            return Err(failed(&"it has no name; use unix:PATH"));
        }
        if let Ok(about) = fs::symlink_metadata(path) {
            if !about.file_type().is_socket() {
                return Err(failed(&"it is another file; choose another name"));
            }
            if about.uid() != rustix::process::geteuid().as_raw() {
                return Err(failed(&"it is another user's; choose another name"));
            }
            if UnixStream::connect(path).is_ok() {
                return Err(failed(&"another process serves it; choose another name"));
            }
            fs::remove_file(path).map_err(|error| failed(&error))?;
        }
        let listener = listener(path).map_err(|error| failed(&error))?;
        let identity = identity(path);
        let text = Arc::new(Mutex::new(Arc::from("# EOF\n")));
        let served = text.clone();
        thread::Builder::new()
            .name("openmetrics".to_owned())
            .spawn(move || serve(&listener, &served))
            .map_err(|error| failed(&error))?;
        Ok(MetricsSocket { path: path.to_owned(), identity, text })
    }

    /// Serves this text from now on.
    pub(super) fn set(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
    }
}

impl Drop for MetricsSocket {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|about| (about.dev(), about.ino()))
}

fn listener(path: &Path) -> io::Result<UnixListener> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Before the socket has a name, so that there is no moment in which others may open it.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// Answers clients, one after the other.
fn serve(listener: &UnixListener, text: &Mutex<Arc<str>>) {
    for client in listener.incoming() {
        match client {
            Ok(mut client) => {
                let text = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // A client that leaves early misses its answer.
                let _ = answer(&mut client, &text);
            }
            // For example, too many open files.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn answer(client: &mut UnixStream, text: &str) -> io::Result<()> {
    let end = Instant::now() + CLIENT_TIME;
    client.set_write_timeout(Some(CLIENT_TIME))?;
    let mut request = Vec::new();
    while !request.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > MAX_REQUEST {
            return Ok(());
        }
        client.set_read_timeout(Some(left))?;
        let mut piece = [0; 1024];
        let length = client.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        request.extend_from_slice(&piece[..length]);
    }
    let (status, body) = if request.starts_with(b"GET ") {
        ("200 OK", text)
    } else if request.starts_with(b"HEAD ") {
        ("200 OK", "")
    } else {
        ("405 Method Not Allowed", "")
    };
    let length = if request.starts_with(b"HEAD ") { text.len() } else { body.len() };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    client.write_all((head + body).as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn ask(path: &Path, request: &str) -> String {
        let mut client = UnixStream::connect(path).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = client.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn the_socket_is_this_users_only_and_serves_the_latest_text() {
        let path = std::env::temp_dir().join(format!("pipemark-metrics-{}.sock", std::process::id()));
        let socket = MetricsSocket::open(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        socket.set("a 1\n# EOF\n".to_owned());
        socket.set("a 2\n# EOF\n".to_owned());
        let answer = ask(&path, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\na 2\n# EOF\n"), "{answer}");
        assert!(answer.contains("Content-Length: 10\r\n"), "{answer}");
        assert!(ask(&path, "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        // A client that sends nothing, or too much, keeps nobody waiting.
        drop(UnixStream::connect(&path).unwrap());
        assert_eq!(ask(&path, &"x".repeat(2 * MAX_REQUEST)), "");
        assert!(MetricsSocket::open(&path).is_err_and(|error| error.to_string().contains("another process serves it")));
        drop(socket);
        assert!(!path.exists());
        // What a killed process left behind is replaced.
        drop(UnixListener::bind(&path).unwrap());
        drop(MetricsSocket::open(&path).unwrap_or_else(|error| panic!("{error}")));
        assert!(MetricsSocket::open(Path::new("")).is_err_and(|error| error.to_string().contains("no name")));
        // Another user's, whether it is served or not.
        drop(UnixListener::bind(&path).unwrap());
        if std::os::unix::fs::chown(&path, Some(65534), None).is_ok() {
            assert!(MetricsSocket::open(&path).is_err_and(|error| error.to_string().contains("another user's")));
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        assert!(MetricsSocket::open(&path).is_err_and(|error| error.to_string().contains("another file")));
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        fs::remove_file(path).unwrap();
    }
}
