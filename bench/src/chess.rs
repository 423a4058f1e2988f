//! Moves in sessions of chess over HTTP.

use anyhow::ensure;
use memchr::memmem;

use crate::client_pool::alone;
use crate::connection::Connection;
use crate::psi::{self, ServerKind};
use crate::server::Server;

/// The moves of every game: Morphy's game at the opera, up to the move before mate.
pub const GAME: [&str; 32] = [
    "e2e4", "e7e5", "g1f3", "d7d6", "d2d4", "c8g4", "d4e5", "g4f3", "d1f3", "d6e5", "f1c4", "g8f6", "f3b3", "d8e7",
    "b1c3", "c7c6", "c1g5", "b7b5", "c3b5", "c6b5", "c4b5", "b8d7", "e1c1", "a8d8", "d1d7", "d8d7", "h1d1", "e7e6",
    "b5d7", "f6d7", "b3b8", "d7b8",
];

pub struct Table {
    session: String,
    /// The invites of White and Black.
    invites: [String; 2],
}

/// Creates this number of games. Reads from each game which invite plays White.
pub fn open(server: &Server, games: u64) -> anyhow::Result<Vec<Table>> {
    let address = server.address();
    alone(async move {
        let mut connection = Connection::open(address).await?;
        let mut tables = Vec::new();
        for _ in 0..games {
            let psi::Invited { id, mut invites } = psi::create_of("chess", &mut connection, ServerKind::Arena).await?;
            for invite in &invites {
                psi::join(&mut connection, invite).await?;
            }
            let seen = psi::sync(&mut connection, &id, &invites[0]).await?;
            if memmem::find(&seen, br#"\"side\":\"WHITE\""#).is_none() {
                ensure!(memmem::find(&seen, br#"\"side\":\"BLACK\""#).is_some(), "a player did not receive its color");
                invites.swap(0, 1);
            }
            let invites = <[String; 2]>::try_from(invites)
                .map_err(|_| anyhow::anyhow!("a session of chess does not have two invites"))?;
            tables.push(Table { session: id, invites });
        }
        Ok(tables)
    })
}

pub async fn play(connection: &mut Connection, table: &Table, ply: usize) -> anyhow::Result<()> {
    let Table { session, invites } = table;
    let (step, from) = (GAME[ply], &invites[ply % 2]);
    let body = format!(r#"{{"challengeId":"{session}","messageType":"move","content":"{step}","from":"{from}"}}"#);
    connection.post("/api/v1/arena/message", body).await?.ok("a move").map(drop)
}
