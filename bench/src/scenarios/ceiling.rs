//! The ceiling without an arena, which shows the maximum for this client and this machine. This scenario is not part of
//! `all`, in which the other scenarios measure the ceiling in turn with the arena.

use crate::arguments::Arguments;
use crate::player_pool::Until;
use crate::psi::ServerKind;
use crate::report::Report;
use crate::scenarios::fanout;
use crate::server::Server;

const NAME: &str = "ceiling";

/// Runs the scenario.
///
/// # Errors
/// If the ceiling doesn't start.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let ceiling = Server::start_ceiling(&arguments.work())?;
    for &connections in &arguments.games.connections {
        let player_pool = arguments.player_pool(connections);
        player_pool.play(&ceiling, ServerKind::Ceiling, Until::Elapsed(arguments.round()? / 5))?;
        let round = player_pool.play(&ceiling, ServerKind::Ceiling, Until::Elapsed(arguments.round()?))?;
        report.faults("ceiling", &round.faults);
        report.row(NAME, format!("{connections} connections: requests/s"), round.rate(), "").note(format!(
            "CPU per request: server {:.1} µs, client {:.1} µs",
            round.server_us_per_request(),
            round.client_us_per_request()
        ));
        report.p99(NAME, &format!("{connections} connections: all requests"), round.latencies.all().summary());
    }
    drop(ceiling);
    let (rate, server_us, client_us) = fanout::ceiling_alone(arguments)?;
    report
        .row(NAME, format!("{} subscribers: deliveries/s", arguments.fanout.subscribers), rate, "")
        .note(format!("CPU per delivery: server {server_us:.2} µs, client {client_us:.2} µs"));
    Ok(())
}
