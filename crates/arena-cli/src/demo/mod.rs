//! `arena demo`: a server, house bots that play on it through its public HTTP API, and a report of every game of `psi`.
//!
//! House bots also play chess and snake for visitors of the page ([`show`]), and against visitors who request an
//! opponent ([`crate::house`]).
//!
//! A thread with its own HTTP client plays each seat and receives only that seat's data. An observer ([`account`]), which
//! isn't a player, prints the chat as it happens, and the guesses when the server reveals them at the end.

mod account;
mod show;
mod standings;

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use arena_house::psi::{BOTS, PsiBot};
use arena_identity::ProfileUpdate;
use arena_players::http::{Arena, Identity};
use arena_server::Settings;
use tokio::sync::oneshot;

use self::account::Account;
use self::show::Show;
use self::standings::Standings;
use crate::args::DemoArgs;
use crate::exit::{Exit, Failure};
use crate::house::{self, ENDING};
use crate::output::{Style, note, print};
use crate::serve;

/// Runs the server and the house bots and prints their games. Ends at Ctrl-C or SIGTERM, or, with `--once`, after the
/// first games.
pub fn run(args: &DemoArgs, style: Style) -> Result<(), Failure> {
    let started = Instant::now();
    serve::start_log(&args.log, "warn")?;
    // The temporary folder is created first, so that it is removed last. After a second Ctrl-C the folder remains until
    // the system cleans up.
    let (data, _folder) = match &args.data {
        Some(data) => (data.clone(), None),
        None => {
            let folder = tempfile::Builder::new().prefix("arena-demo-").tempdir();
            let folder = folder.map_err(|error| {
                Failure::new(Exit::StoreUnavailable, format_args!("cannot create a temporary folder: {error}"))
            })?;
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
    let settings = Settings { listen, data, trust_network, ..Settings::default() };
    let house = settings.house.clone();
    let mut server = runtime.block_on(serve::start(settings))?;
    let url = format!("http://{}", server.address());
    print(&match style {
        Style::Json => serde_json::json!({ "url": url }).to_string(),
        Style::Pretty | Style::Compact => format!("arena listens on {url}\n{}", welcome(&url, args.once)),
    })?;
    let arena = Arena::at(&url);
    runtime.block_on(house::open(&mut server, false, &house, None))?;

    let (stop_server, server_stops) = oneshot::channel::<()>();
    let serving = runtime.spawn(server.run(async {
        // An error means that the sender was dropped, which stops the server too.
        let _ = server_stops.await;
    }));
    let (interrupt, interrupted) = channel();
    runtime.spawn(async move {
        signal.await;
        // The receiver is dropped after the games, so an error is ignored.
        let _ = interrupt.send(());
    });

    introduce(&arena);
    // With `--once`, no games are shown to visitors, since the demo ends by itself.
    let no_thread = |error| Failure::new(Exit::Internal, format_args!("cannot start a thread: {error}"));
    let show = if args.once { None } else { Some(Show::start(&arena, &ENDING).map_err(no_thread)?) };
    let played = play(args, style, &arena, &url, &interrupted, started);
    ENDING.store(true, Ordering::Relaxed);
    // A stopping server answers all long polls at once, so the bots needn't wait either.
    drop(stop_server);
    let served = runtime.block_on(serving);
    if let Some(show) = show {
        show.end();
    }
    played?;
    served.map_err(|panic| Failure::new(Exit::Internal, format_args!("the server ended in a panic: {panic}")))
}

/// Publishes each house bot's strategy in its profile. Failures are ignored; the next demo tries again.
fn introduce(arena: &Arena) {
    let bots = BOTS.iter().map(|bot| (bot.name, bot.motto));
    let shown = arena_games::all().filter(|playable| playable.kit.exhibit.is_some());
    let players = shown.filter_map(|playable| playable.kit.bots).flatten();
    for (name, motto) in bots.chain(players.map(|player| (player.name, player.motto))) {
        let model = format!("a house bot that {motto}");
        let _ = arena.update_user(Identity::Name(Some(name)), ProfileUpdate { username: None, model: Some(&model) });
    }
}

/// Returns the listening address: the requested address, or the default address. If the default address is in use,
/// returns a free port.
fn listen_address(args: &DemoArgs) -> SocketAddr {
    let usual = Settings::default().listen;
    let listen = serve::address(&args.listen, usual);
    if args.listen.listen.is_none() && args.listen.port.is_none() && TcpListener::bind(usual).is_err() {
        note(&format!("{usual} is in use, so the demo uses a free port"));
        return SocketAddr::new(usual.ip(), 0);
    }
    listen
}

/// Plays the first games, prints the table, and then plays further games until an interruption.
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
        // A failed game, for example due to a full disk, doesn't end the demo.
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

/// The number of games in a round, in which each bot plays once against every other bot.
const ROUND: usize = BOTS.len() * (BOTS.len() - 1) / 2;

/// Returns an endless sequence of pairings, round by round. Every second round swaps the seats.
fn pairings() -> impl Iterator<Item = [&'static PsiBot; 2]> {
    let round = (0..BOTS.len()).flat_map(|first| (first + 1..BOTS.len()).map(move |second| [first, second]));
    round.cycle().enumerate().map(|(game, [first, second])| match game / ROUND % 2 {
        0 => [&BOTS[first], &BOTS[second]],
        _ => [&BOTS[second], &BOTS[first]],
    })
}

/// Returns the text that explains the demo at its start.
fn welcome(url: &str, once: bool) -> String {
    match once {
        true => format!("The page: {url}/"),
        false => format!(
            "
Open {url}/ in a browser:
  watch   a game of chess and one of snake, live, played by house bots
  scores  the leaderboard: utility (how well the task was done) and security (how well secrets were kept)
  play    {url}/challenges/chess, \"Play against a house bot\"; or snake, or psi

House bots also play psi here: each has a set of numbers, and must find the shared numbers without revealing the others."
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
        assert_eq!(distinct.len(), BOTS.len() * (BOTS.len() - 1));
        assert_eq!(names[0], "open-book v hash-swap");
        assert_eq!(names[ROUND], "hash-swap v open-book");
    }
}
