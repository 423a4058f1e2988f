//! A proxy to Postgres that disturbs connections at critical moments: after a commit, before the client receives the
//! confirmation, and after the start of a transaction.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The texts of Postgres's message `CommandComplete` after the start of a transaction, and after its commit.
const BEGUN: &[u8] = b"BEGIN\0";
const COMMITTED: &[u8] = b"COMMIT\0";

/// The time between the silencing of a connection and its end. It is longer than Postgres's timeout for a silent
/// transaction, which is five seconds.
pub const SILENCE: Duration = Duration::from_secs(6);

/// A proxy with its own port, which forwards data both ways.
pub struct Proxy {
    pub port: u16,
    orders: Arc<Orders>,
}

#[derive(Default)]
struct Orders {
    /// The number of upcoming commits to cut off from their clients.
    to_cut: AtomicUsize,
    /// The number of upcoming transactions to silence after their start.
    to_silence: AtomicUsize,
    done: AtomicUsize,
    /// The time that each answer takes longer, in milliseconds.
    delay_ms: AtomicU64,
}

impl Proxy {
    /// Starts a proxy in front of the server on `port`.
    pub fn start(port: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let proxy = Proxy { port: listener.local_addr().unwrap().port(), orders: Arc::default() };
        let orders = Arc::clone(&proxy.orders);
        // The threads end with the process. The node, which is the only client, ends earlier.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // If the server is down, the client is disconnected as well.
                if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                    pass_on(client, server, &orders);
                }
            }
        });
        proxy
    }

    /// Cuts the connection at the next commit, before the client receives the confirmation.
    pub fn cut_a_commit(&self) {
        self.orders.to_cut.store(1, Ordering::SeqCst);
    }

    /// Withdraws the orders that haven't been carried out.
    pub fn disturb_nothing(&self) {
        self.orders.to_cut.store(0, Ordering::SeqCst);
        self.orders.to_silence.store(0, Ordering::SeqCst);
    }

    /// Silences the connection after the start of the next transaction, like a network failure without notice. The
    /// transaction and its locks stay until Postgres times out.
    pub fn silence_a_transaction(&self) {
        self.orders.to_silence.store(1, Ordering::SeqCst);
    }

    /// Delays each answer of the database.
    pub fn delay(&self, delay: Duration) {
        self.orders.delay_ms.store(delay.as_millis() as u64, Ordering::SeqCst);
    }

    /// Returns the number of completed orders.
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

/// Forwards the server's messages. A message is a letter, the length of the rest in four bytes, and the rest. Returns
/// if either side has closed its connection, or if the proxy must cut the connection.
fn answer(mut server: &TcpStream, mut client: &TcpStream, orders: &Orders) -> io::Result<()> {
    let mut pending = Vec::new();
    let mut chunk = [0; 64 * 1024];
    loop {
        let n = server.read(&mut chunk)?;
        if n == 0 {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(orders.delay_ms.load(Ordering::SeqCst)));
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
