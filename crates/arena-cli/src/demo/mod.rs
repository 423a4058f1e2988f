//! `arena demo`: the five-minute tour. A server, house bots that play in it through its public HTTP API, and an account
//! of every game for whoever watches.
//!
//! Beside the games of `psi`, which are told, house bots play chess and snake for whoever looks at the page ([`show`]), and play with
//! whoever asks for an opponent there ([`house`]).
//!
//! Each seat is played by a thread with an HTTP client of its own, which sees what its seat may see and nothing else
//! ([`seat`]). What a bot does is a pure function of that ([`bots`]). The onlooker ([`account`]) is a stranger to the
//! session: it prints the chat as it comes, and the guesses when the arena reveals them at the end.
//!
//! # How house bots talk
//!
//! A chat is free text, so bots that want to understand each other need a convention. Ours is three kinds of line
//! ([`convention::Line`]), of which each bot says one, as soon as it knows its set:
//!
//! ```text
//! PLAIN 101 205 880 …                   my whole set, in the open
//! DIGESTS salt=5f0c… 8a31… 90be… …      for each number of mine, SHA-256 of `salt:number`, cut to 16 hex digits
//! PASS                                  I tell nothing
//! ```
//!
//! The salt is the speaker's own. The listener hashes its own numbers with it to see which of them the speaker has.
//! Anything else that is said is not for bots, and they wait on; who stays silent is taken to have passed.

mod account;
mod bots;
mod convention;
mod house;
mod seat;
mod show;
mod standings;
mod table;

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use arena_identity::ProfileUpdate;
use arena_server::Settings;
use tokio::sync::oneshot;

use self::account::Account;
use self::bots::{Bot, HOUSE};
use self::show::Show;
use self::standings::Standings;
use crate::args::DemoArgs;
use crate::client::Arena;
use crate::exit::{Exit, Failure};
use crate::output::{Style, note, print};
use crate::serve;

/// Raised when the demo ends; the threads of house bots look at it.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Serves, plays and prints until Ctrl-C or SIGTERM, or, with `--once`, until the first games are over.
pub fn run(args: &DemoArgs, style: Style) -> Result<(), Failure> {
    let started = Instant::now();
    serve::start_log(&args.log, "warn")?;
    // Made first, so that it's removed last, with everything in it. A second Ctrl-C leaves it to the system's cleaning.
    let (data, _folder) = match &args.data {
        Some(data) => (data.clone(), None),
        None => {
            let folder = tempfile::Builder::new().prefix("arena-demo-").tempdir();
            let folder = folder
                .map_err(|error| Failure::new(Exit::StoreUnavailable, format_args!("no temporary folder: {error}")))?;
            (folder.path().to_owned(), Some(folder))
        }
    };
    let runtime = serve::runtime()?;
    let signal = {
        let _on_runtime = runtime.enter();
        serve::stop_signal()?
    };
    let listen = listen_address(args);
    let trust_network = args.listen.trust_network;
    let server = runtime.block_on(serve::start(Settings { listen, data, trust_network, ..Settings::default() }))?;
    let url = format!("http://{}", server.address());
    print(&match style {
        Style::Json => serde_json::json!({ "url": url }).to_string(),
        Style::Pretty | Style::Compact => format!("arena listens on {url}\n{}", welcome(&url, args.once)),
    })?;
    let arena = Arena::at(&url);
    let no_thread = |error| Failure::new(Exit::Internal, format_args!("the system gives no thread: {error}"));
    server.offer(house::open(&arena, &ENDING).map_err(no_thread)?);

    let (stop_server, server_stops) = oneshot::channel::<()>();
    let serving = runtime.spawn(server.run(async {
        // Dropping the sender stops the server too.
        let _ = server_stops.await;
    }));
    let (interrupt, interrupted) = channel();
    runtime.spawn(async move {
        signal.await;
        // The receiver is gone when the games are over anyway.
        let _ = interrupt.send(());
    });

    introduce(&arena);
    // A demo that ends by itself has nobody who watches.
    let show = if args.once { None } else { Some(Show::start(&arena, &ENDING).map_err(no_thread)?) };
    let played = play(args, style, &arena, &url, &interrupted, started);
    ENDING.store(true, Ordering::Relaxed);
    // The server answers all who wait for news at once when it stops, so that the bots needn't wait either.
    drop(stop_server);
    let served = runtime.block_on(serving);
    if let Some(show) = show {
        show.end();
    }
    played?;
    match served {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failure::caused(Exit::Internal, &error)),
        Err(panic) => Err(Failure::new(Exit::Internal, format_args!("the server ended in a panic: {panic}"))),
    }
}

/// Says on the page how each house bot plays. What can't be told now is told by the next demo.
fn introduce(arena: &Arena) {
    let bots = HOUSE.iter().map(|bot| (bot.name, bot.motto));
    let players = arena_games::all().filter_map(|playable| playable.kit.bots).flatten();
    for (name, motto) in bots.chain(players.map(|player| (player.name, player.motto))) {
        let model = format!("a house bot that {motto}");
        let _ = arena.update_user(Some(name), ProfileUpdate { username: None, model: Some(&model) });
    }
}

/// The address that was asked for. If none was and the usual one is taken, any free one: a tour shouldn't fail for that.
fn listen_address(args: &DemoArgs) -> SocketAddr {
    let usual = Settings::default().listen;
    let listen = serve::address(&args.listen, usual);
    if args.listen.listen.is_none() && args.listen.port.is_none() && TcpListener::bind(usual).is_err() {
        note(&format!("{usual} is taken, so the demo takes a free port"));
        return SocketAddr::new(usual.ip(), 0);
    }
    listen
}

/// The first burst of games, the table, and then a game every now and then until somebody interrupts.
fn play(
    args: &DemoArgs,
    style: Style,
    arena: &Arena,
    url: &str,
    interrupted: &Receiver<()>,
    started: Instant,
) -> Result<(), Failure> {
    let account = Account { arena, style };
    let mut standings = Standings::default();
    for (number, seats) in (1..=args.games).zip(pairings()) {
        if interrupted.try_recv().is_ok() {
            return Ok(());
        }
        let game = account.of_game(number, seats)?;
        if number == 1 && style != Style::Json {
            print(&format!("   (first scored game {:.1} s after the start)", started.elapsed().as_secs_f64()))?;
        }
        standings.add(&game);
        if number == args.games {
            standings.print(style)?;
            if style != Style::Json {
                print(&what_next(url, &game.session, args.once))?;
            }
        }
    }
    if args.once {
        return Ok(());
    }
    let burst = args.games as usize;
    for (number, seats) in (args.games + 1..).zip(pairings().skip(burst)) {
        match interrupted.recv_timeout(Duration::from_secs(args.pace)) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
        // One game that fails, say because the disk is full for a while, is no reason to end the tour.
        match account.of_game(number, seats) {
            Ok(game) => standings.add(&game),
            Err(failure) => failure.print(),
        }
        if (number as usize).is_multiple_of(ROUND) {
            standings.print(style)?;
        }
    }
    Ok(())
}

/// Games in which everybody meets everybody once.
const ROUND: usize = HOUSE.len() * (HOUSE.len() - 1) / 2;

/// Everybody against everybody, again and again, with the seats changed every other round.
fn pairings() -> impl Iterator<Item = [&'static Bot; 2]> {
    let round = (0..HOUSE.len()).flat_map(|first| (first + 1..HOUSE.len()).map(move |second| [first, second]));
    round.cycle().enumerate().map(|(game, [first, second])| match game / ROUND % 2 {
        0 => [&HOUSE[first], &HOUSE[second]],
        _ => [&HOUSE[second], &HOUSE[first]],
    })
}

/// What there is to see, for somebody who has never heard of it.
fn welcome(url: &str, once: bool) -> String {
    match once {
        true => format!("The page: {url}/"),
        false => format!(
            "
Open {url}/ in a browser:
  watch   a game of chess and one of snake, live, played by house bots
  scores  the leaderboard: utility is the job done, security what was kept to oneself
  play    {url}/challenges/chess, \"Play against a house bot\"; or snake, or psi

Meanwhile house bots play psi here: each holds a set of numbers, and shall find what both hold without giving away the rest."
        ),
    }
}

fn what_next(url: &str, session: &str, once: bool) -> String {
    let stay = if once { "" } else { "\n\nFurther games follow. Ctrl-C ends the demo." };
    format!(
        "\
The page: {url}/

Look at the last session yourself:
  curl '{url}/api/challenges/psi?limit=1'
  curl '{url}/api/chat/sync?channel={session}'
  curl '{url}/api/arena/sync?channel={session}'{stay}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_every_pair_and_the_next_one_changes_the_seats() {
        let names: Vec<String> =
            pairings().take(2 * ROUND).map(|[first, second]| format!("{} v {}", first.name, second.name)).collect();
        let mut distinct = names.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), HOUSE.len() * (HOUSE.len() - 1));
        assert_eq!(names[0], "open-book v hash-swap");
        assert_eq!(names[ROUND], "hash-swap v open-book");
    }
}
