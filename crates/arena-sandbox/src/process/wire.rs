//! The messages between the runner, the launcher and the launcher's stages. Each message is a JSON packet on
//! a local socket, which also transfers open files. The socket preserves packet boundaries, so the messages
//! need no framing.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{ActiveSandbox, Ended, Limits, SandboxMode, ScratchSetup, StartError};

/// Maximum size of a packet, in bytes. Sockets accept about 200 KB by default.
const MAX_PACKET: usize = 160 << 10;

/// Maximum number of open files in a packet.
const MAX_FDS: usize = 4;

/// The runner's order to start an agent. The packet also transfers the agent's ends of its three pipes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub folder: PathBuf,
    pub env: Vec<(OsString, OsString)>,
    pub search_path: OsString,
    pub home: Option<PathBuf>,
    pub expose: Vec<PathBuf>,
    pub hidden: Vec<PathBuf>,
    pub sandbox: SandboxMode,
    pub limits: Limits,
    pub scratch_in: PathBuf,
    pub setup: Option<ScratchSetup>,
}

/// A report from the launcher or one of its stages.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// The agent's network namespace has a loopback interface. The packet also transfers a socket that listens on it.
    Listening,
    /// The agent has started. The packet also transfers a pidfd of the agent if the kernel supports pidfds.
    Started(ActiveSandbox),
    Failed(StartError),
    /// The agent and all its processes have ended.
    Ended(Ended),
}

/// Creates a pair of connected sockets that preserve packet boundaries.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one packet. If the peer has closed its socket, the function returns an error, and the process gets no signal.
pub(crate) fn send(socket: impl AsFd, packet: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let packet = serde_json::to_vec(packet).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    if packet.len() > MAX_PACKET {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the agent's arguments and environment are too long"));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many files for one packet"));
    }
    rustix::io::retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(&packet)], &mut ancillary, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Receives one packet and its open files. Returns `None` if the peer has closed its socket.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut packet = vec![0; MAX_PACKET];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(&mut packet)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) => break received.bytes,
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => break 0,
            Err(error) => return Err(error.into()),
        }
    };
    if received == 0 {
        return Ok(None);
    }
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    let packet = serde_json::from_slice(&packet[..received])?;
    Ok(Some((packet, fds)))
}
