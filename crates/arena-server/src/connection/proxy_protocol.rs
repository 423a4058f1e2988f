//! The PROXY protocol, version 2: a header before the first request of a connection, in which a balancer that passes
//! bytes on names the client (HAProxy: `send-proxy-v2`).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use proxy_header::{ParseConfig, ProxyHeader};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// The length of the part before the addresses, which ends with the length of the rest.
const FIXED: usize = 16;

/// The beginning of each header.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The maximum length of the rest: addresses and additional fields.
const MAX_REST: usize = 2048;

/// The time limit for the header. A balancer sends it at once.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the header from a connection of a balancer at `peer`, and returns the connection with the address of the client.
/// For a connection of the balancer's own, such as a check of health, and for a client without an IP address, that is
/// `peer`.
///
/// # Errors
/// If there is no valid header within five seconds.
pub(crate) async fn read_client(mut stream: TcpStream, peer: SocketAddr) -> io::Result<(TcpStream, SocketAddr)> {
    let header = tokio::time::timeout(TIMEOUT, read_header(&mut stream)).await;
    let header = header.map_err(|_| invalid("it isn't complete within 5 s"))??;
    let (header, _) =
        ProxyHeader::parse(&header, ParseConfig::default()).map_err(|error| invalid(&error.to_string()))?;
    let client = header.proxied_address().map_or(peer, |address| address.source);
    // A client with IPv4 may come with an IPv6 address that contains its own.
    Ok((stream, SocketAddr::new(client.ip().to_canonical(), client.port())))
}

/// Reads exactly the bytes of the header, because a request follows.
async fn read_header(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut header = vec![0; FIXED];
    stream.read_exact(&mut header).await?;
    if !header.starts_with(&SIGNATURE) {
        return Err(invalid("the connection begins with something else"));
    }
    let rest = usize::from(u16::from_be_bytes([header[FIXED - 2], header[FIXED - 1]]));
    if rest > MAX_REST {
        return Err(invalid("it is too long"));
    }
    header.resize(FIXED + rest, 0);
    stream.read_exact(&mut header[FIXED..]).await?;
    Ok(header)
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("invalid PROXY header: {reason}"))
}
