//! Messages to a service manager such as systemd (`Type=notify`), over the socket that `NOTIFY_SOCKET` names.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The message that the server accepts requests.
pub const READY: &str = "READY=1";

/// The message that the server has begun to shut down.
pub const STOPPING: &str = "STOPPING=1";

/// Sends a message to the service manager, if there is one. If sending fails, the function only logs the error.
pub fn send(message: &str) {
    if let Err(error) = try_send(message) {
        tracing::warn!("cannot send {message} to the service manager: {error}");
    }
}

fn try_send(message: &str) -> io::Result<()> {
    let Some(name) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return Ok(()) };
    // A name that begins with `@` denotes an abstract socket.
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(&name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address).map(|_| ())
}
