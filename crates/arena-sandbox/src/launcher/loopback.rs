//! The loopback interface of an agent's network namespace, for agents that use services of the arena.
//!
//! The socket that listens on it belongs to the namespace, but the arena holds it: the connections of the agent's
//! processes arrive at the arena without a relay, and no other process can connect.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

/// The number of a request that changes a network interface (`RTM_NEWLINK`).
const CHANGE_INTERFACE: u16 = 16;

/// The flags of a request with an acknowledgment (`NLM_F_REQUEST | NLM_F_ACK`).
const ACKNOWLEDGED: u16 = 5;

/// The number of a message with the result of a request (`NLMSG_ERROR`).
const RESULT: u16 = 2;

/// The index of the loopback interface, which the kernel creates first in each network namespace.
const LOOPBACK: i32 = 1;

/// The flag of an active interface (`IFF_UP`).
const UP: u32 = 1;

/// The size of the request: a header of 16 bytes and the interface's data of 16 bytes.
const REQUEST_BYTES: usize = 32;

/// Activates the loopback interface of this process's network namespace, and listens on a port of it.
pub(super) fn listen(port: u16) -> io::Result<TcpListener> {
    activate()?;
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

fn activate() -> io::Result<()> {
    // The default protocol is that of network interfaces (`NETLINK_ROUTE`).
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    sendto(&socket, &request(), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0; 1024];
    let (received, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    result(&answer[..received])
}

/// Returns the request to activate the interface, in the format of rtnetlink.
fn request() -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&CHANGE_INTERFACE.to_ne_bytes());
    bytes[6..8].copy_from_slice(&ACKNOWLEDGED.to_ne_bytes());
    bytes[20..24].copy_from_slice(&LOOPBACK.to_ne_bytes());
    bytes[24..28].copy_from_slice(&UP.to_ne_bytes());
    // The mask of the flags that change.
    bytes[28..].copy_from_slice(&UP.to_ne_bytes());
    bytes
}

/// Reads the kernel's answer: a header, and 0 or the negative number of an error.
fn result(answer: &[u8]) -> io::Result<()> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer cannot be read");
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let code = answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, code) {
        (Some(RESULT), Some(0)) => Ok(()),
        (Some(RESULT), Some(code)) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        _ => Err(invalid()),
    }
}
