//! `arena demo`: a server, house bots that play on it through its public HTTP API, and a report of the games of `psi` by
//! the bots that exchange digests or plain sets.
//!
//! House bots also play chess, snake and the challenges of words for visitors of the page ([`exhibition`]), and against
//! visitors who request an opponent ([`crate::serve::house`]).
//!
//! A thread with its own HTTP client plays each seat and receives only that seat's data. An observer ([`game`]), which
//! isn't a player, prints the chat as it happens, and the guesses when the server reveals them at the end.

mod exhibition;
mod game;
mod standings;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use arena_house::psi::{BOTS, PsiBot};
use arena_identity::ProfileUpdate;
use arena_players::http::{Arena, Identity};
use arena_server::Settings;
use clap::Args;
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::files::temporary_folder;
use crate::matches::options::games;
use crate::output::{Style, note, print, print_line};
use crate::serve::house::{self, ENDING};
use crate::serve::{self, ListenArgs, LogArgs};

use exhibition::Exhibition;
use game::Observer;
use standings::Standings;

/// Options of `arena demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena demo                        play, print scores, keep serving until Ctrl-C
  arena demo --once                 exit after the first games
  arena demo --games 12 --pace 1    play 12 games first, then one every second
  arena demo --data demo-data       keep the data")]
pub struct DemoArgs {
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Data folder, kept after the demo [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Number of games to play first.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = games::<u32>)]
    pub games: u32,
    /// Time between later games, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub pace: u64,
    /// Exit after the first games.
    #[arg(long)]
    pub once: bool,
    /// The log on stderr.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Runs the server and the house bots and prints their games. Ends at Ctrl-C or SIGTERM, or, with `--once`, after the
/// first games.
pub fn run(args: &DemoArgs, style: Style) -> Result<(), Failure> {
    let started = Instant::now();
    serve::start_log(&args.log, "warn")?;
    // The temporary folder is created first, so that it is removed last. After a second Ctrl-C the folder remains until
    // the system cleans up.
    let (data, _temporary) = match &args.data {
        Some(data) => (data.clone(), None),
        None => {
            let folder = temporary_folder("arena-demo-", Exit::StoreUnavailable)?;
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
    match style {
        Style::Json => print_line(&json!({ "url": url }))?,
        Style::Pretty | Style::Compact => print(&format!("arena listens on {url}\n{}", welcome(&url, args.once)))?,
    }
    let arena = Arena::at(&url);
    runtime.block_on(house::open(&mut server, false, &house, None))?;

    let stop_server = serve::run_in_background(server, &runtime);
    let (interrupt, interrupted) = channel();
    runtime.spawn(async move {
        signal.await;
        // The receiver is dropped after the games, so an error is ignored.
        let _ = interrupt.send(());
    });

    publish_profiles(&arena);
    // With `--once`, no games are shown to visitors, since the demo ends by itself.
    let exhibition = if args.once { None } else { Some(Exhibition::start(&arena, &ENDING)?) };
    let played = play(args, &Observer { arena: &arena, style }, &url, &interrupted, started);
    ENDING.store(true, Ordering::Relaxed);
    // A stopping server answers all long polls at once, so the bots needn't wait either.
    let served = stop_server();
    if let Some(exhibition) = exhibition {
        exhibition.end();
    }
    played.and(served)
}

/// Publishes each house bot's strategy in its profile. Failures are ignored; the next demo tries again.
fn publish_profiles(arena: &Arena) {
    let bots = BOTS.iter().map(|bot| (bot.name.to_owned(), bot.motto));
    for (name, motto) in bots.chain(exhibition::players()) {
        let model = format!("a house bot that {motto}");
        let _ = arena.update_user(Identity::Name(Some(&name)), ProfileUpdate { username: None, model: Some(&model) });
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
    observer: &Observer<'_>,
    url: &str,
    interrupted: &Receiver<()>,
    started: Instant,
) -> Result<(), Failure> {
    let style = observer.style;
    let mut standings = Standings::default();
    for (number, bots) in (1..=args.games).zip(pairings()) {
        if interrupted.try_recv().is_ok() {
            return Ok(());
        }
        let game = observer.play_game(number, bots)?;
        if number == 1 && style != Style::Json {
            print(&format!("   (first scored game {:.1} s after the start)", started.elapsed().as_secs_f64()))?;
        }
        standings.add(&game);
        if number == args.games {
            standings.print(style)?;
            if style != Style::Json {
                print(&next_steps(url, &game.session, args.once))?;
            }
        }
    }
    if args.once {
        return Ok(());
    }
    for (number, bots) in (1..).zip(pairings()).skip(args.games as usize) {
        match interrupted.recv_timeout(Duration::from_secs(args.pace)) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
        // A failed game, for example due to a full disk, doesn't end the demo.
        match observer.play_game(number, bots) {
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
  watch   games of chess and snake, and challenges in words, live, played by house bots
  scores  the leaderboard: utility (how well the task was done) and security (how well secrets were kept)
  play    {url}/challenges/chess, \"Play against a house bot\"; or snake, or psi

House bots also play psi here: each has a set of numbers, and must find the shared numbers without revealing the others."
        ),
    }
}

fn next_steps(url: &str, session: &str, once: bool) -> String {
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
