//! A way to Postgres that can be cut, also in the one moment that matters: when a transaction is committed, and its client doesn't know.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What Postgres says when a transaction is committed: the message `CommandComplete` with this text.
const COMMITTED: &[u8] = b"COMMIT\0";

/// Listens on a port of its own and passes on what comes, both ways.
pub struct Proxy {
    /// Where it listens.
    pub port: u16,
    orders: Arc<Orders>,
}

#[derive(Default)]
struct Orders {
    /// How many of the next commits are to be cut off from their clients.
    to_cut: AtomicUsize,
    cut: AtomicUsize,
}

impl Proxy {
    /// A proxy before the server on `port`.
    pub fn start(port: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let proxy = Proxy { port: listener.local_addr().unwrap().port(), orders: Arc::default() };
        let orders = Arc::clone(&proxy.orders);
        // Both end with the process: whoever connects is a node of a test, and goes before.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // The server may be away. Then the client is as well.
                if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                    pass_on(client, server, &orders);
                }
            }
        });
        proxy
    }

    /// Cuts the connection behind the next commit, before its client is told of it.
    pub fn cut_a_commit(&self) {
        self.orders.to_cut.store(1, Ordering::SeqCst);
    }

    /// How many commits were cut off.
    pub fn cut(&self) -> usize {
        self.orders.cut.load(Ordering::SeqCst)
    }
}

fn pass_on(client: TcpStream, server: TcpStream, orders: &Arc<Orders>) {
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    let orders = Arc::clone(orders);
    thread::spawn(move || {
        let _ = answer(&server, &client, &orders);
        let _ = (server.shutdown(Shutdown::Both), client.shutdown(Shutdown::Both));
    });
}

/// Passes on what the server says, message by message: a letter, the length of the rest in four bytes, the rest. Returns when
/// either is gone, or when the connection is to be cut.
fn answer(mut server: &TcpStream, mut client: &TcpStream, orders: &Orders) -> io::Result<()> {
    let mut pending = Vec::new();
    let mut chunk = [0; 64 * 1024];
    loop {
        let n = server.read(&mut chunk)?;
        if n == 0 {
            return Ok(());
        }
        pending.extend_from_slice(&chunk[..n]);
        let mut whole = 0;
        while let Some(length) = pending.get(whole + 1..whole + 5) {
            let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
            let Some(text) = pending.get(whole + 5..whole + 1 + length) else { break };
            if pending[whole] == b'C' && text == COMMITTED && orders.to_cut.swap(0, Ordering::SeqCst) > 0 {
                orders.cut.fetch_add(1, Ordering::SeqCst);
                return client.write_all(&pending[..whole]);
            }
            whole += 1 + length;
        }
        client.write_all(&pending[..whole])?;
        pending.drain(..whole);
    }
}
