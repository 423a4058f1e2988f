//! A way to Postgres that can be cut, in the moments that matter: when a transaction is committed and its client doesn't know, and when
//! one has begun.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// What Postgres says when a transaction has begun, and when it is committed: the message `CommandComplete` with this text.
const BEGUN: &[u8] = b"BEGIN\0";
const COMMITTED: &[u8] = b"COMMIT\0";

/// How long a connection stays silent that falls silent, until it is cut.
pub const SILENCE: Duration = Duration::from_secs(8);

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
    /// How many of the next transactions are to fall silent once they have begun.
    to_silence: AtomicUsize,
    done: AtomicUsize,
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

    /// Lets the connection fall silent when the next transaction has begun on it, as where a network breaks and nobody is told. The
    /// transaction stays open until Postgres has had enough of it, with all that it has locked.
    pub fn silence_a_transaction(&self) {
        self.orders.to_silence.store(1, Ordering::SeqCst);
    }

    /// How many of these orders have been carried out.
    pub fn done(&self) -> usize {
        self.orders.done.load(Ordering::SeqCst)
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
            let order = match (pending[whole], text) {
                (b'C', COMMITTED) => Some(&orders.to_cut),
                (b'C', BEGUN) => Some(&orders.to_silence),
                _ => None,
            };
            if order.is_some_and(|order| order.swap(0, Ordering::SeqCst) > 0) {
                orders.done.fetch_add(1, Ordering::SeqCst);
                client.write_all(&pending[..whole])?;
                if text == BEGUN {
                    thread::sleep(SILENCE);
                }
                return Ok(());
            }
            whole += 1 + length;
        }
        client.write_all(&pending[..whole])?;
        pending.drain(..whole);
    }
}
