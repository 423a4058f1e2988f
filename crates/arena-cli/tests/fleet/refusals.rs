//! Impossible tournaments, which are refused with a sentence and an exit code before anything is queued or written.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::NatsServer;
use expect_test::{Expect, expect};
use rustix::process::{Pid, Signal, kill_process};

use crate::fixture::{FleetFixture, finish};
use crate::program::{arena, run};

/// Starts a tournament and compares its exit code and its error. In `args`, `URL` is replaced by the server's URL, and
/// `LAB` by the folder of agents.
#[track_caller]
fn check(fixture: &FleetFixture, url: &str, args: &str, expected: Expect) {
    let lab_path = fixture.path("");
    let lab_path = lab_path.to_str().unwrap().trim_end_matches('/');
    let out = fixture.path("refused");
    let out = out.to_str().unwrap();
    let args = args.replace("URL", url).replace("LAB", lab_path);
    let args = ["tournament", "run", "snake", "--out", out].into_iter().chain(args.split(' '));
    let summary = run(&args.collect::<Vec<_>>());
    let port = url.rsplit(':').next().unwrap();
    let said = summary.stderr.replace(lab_path, "LAB").replace(port, "PORT");
    expected.assert_eq(&format!("{}: {}", summary.code, said.lines().next().unwrap_or_default()));
    assert!(!fixture.path("refused").exists(), "a folder was created");
}

#[test]
fn tournaments_that_workers_cannot_play_are_refused() {
    let (fixture, nats) = (FleetFixture::new(), NatsServer::start());
    fixture.bot("a", 1, 0.0);
    fixture.bot("b", 2, 0.0);
    fs::create_dir(fixture.path("linked")).unwrap();
    fs::copy(fixture.path("bots-a/a.py"), fixture.path("linked/agent.py")).unwrap();
    std::os::unix::fs::symlink("agent.py", fixture.path("linked/link")).unwrap();
    let both = "--agent LAB/bots-a/a.py --agent LAB/bots-b/b.py";
    let url = nats.url();
    check(
        &fixture,
        &url,
        "--agent LAB/bots-a/a.py --agent http://127.0.0.1:9/ --nats-url URL",
        expect![
            "8: error: 127.0.0.1:9 isn't a local file or folder, but workers play only such agents; leave out --nats-url"
        ],
    );
    check(
        &fixture,
        &url,
        "--agent LAB/bots-a/a.py --agent LAB/linked --nats-url URL",
        expect![
            "8: error: cannot pack linked with its whole folder LAB/linked: LAB/linked/link is neither a file nor a folder; give the agent a folder of its own"
        ],
    );
    check(
        &fixture,
        &url,
        "--nats-url URL -- python3 LAB/bots-a/a.py LAB/bots-b/b.py -- python3 LAB/bots-b/b.py",
        expect!["8: error: a needs LAB/bots-b/b.py, but workers get only its folder LAB/bots-a"],
    );
    check(
        &fixture,
        &url,
        &format!("{both} --nats-url URL --sandbox off"),
        expect!["2: error: --sandbox is an option of each worker; with --nats-url give it to `arena worker`"],
    );
    check(
        &fixture,
        &url,
        &format!("{both} --cross-check 0.5"),
        expect!["2: error: the following required arguments were not provided:"],
    );
    check(
        &fixture,
        &url,
        &format!("{both} --nats-url 127.0.0.1:4222"),
        expect![
            "2: error: --nats-url <URL> is not a URL of a NATS server, such as nats://127.0.0.1:4222 or tls://user:password@host: it doesn't begin with nats:// or tls://"
        ],
    );
    let plain = NatsServer::start_plain();
    check(
        &fixture,
        &plain.url(),
        &format!("{both} --nats-url URL"),
        expect![
            "4: error: the NATS server at nats://127.0.0.1:PORT has JetStream disabled: start it as `nats-server -js`, or enable JetStream in its configuration"
        ],
    );
    let guarded = NatsServer::start_with("authorization { user: ada, password: secret }");
    check(
        &fixture,
        &guarded.url(),
        &format!("{both} --nats-url {}", guarded.url().replace("//", "//ada:wrong@")),
        expect!["4: error: the NATS server at nats://127.0.0.1:PORT rejects the credentials in the URL"],
    );
    let url = plain.url();
    drop(plain);
    check(
        &fixture,
        &url,
        &format!("{both} --nats-url URL"),
        expect![
            "4: error: no NATS server answers at nats://127.0.0.1:PORT: IO error: Connection refused (os error 111)"
        ],
    );
}

#[test]
fn a_tournament_without_workers_waits_and_can_be_resumed() {
    let (fixture, nats) = (FleetFixture::new(), NatsServer::start());
    let agents = [fixture.bot("a", 1, 0.0), fixture.bot("b", 2, 0.0)];
    fixture.play_here(&agents, &[]);
    let tournament = fixture.start_far(&nats, &agents, &[]);
    wait_for_stream(&nats, "arena_jobs");
    kill_process(Pid::from_raw(tournament.id().try_into().unwrap()).unwrap(), Signal::INT).unwrap();
    let summary = finish(tournament);
    assert_eq!(summary.code, 130, "{summary:#?}");
    assert!(
        summary.stderr.contains("stopped after 0 of 2 games; to resume: arena tournament resume "),
        "{}",
        summary.stderr
    );
    let folder = fixture.path("far");
    let summary = run(&["tournament", "resume", folder.to_str().unwrap()]);
    assert_eq!(summary.code, 0, "{summary:#?}");
    fixture.assert_same();
}

fn wait_for_stream(nats: &NatsServer, name: &str) {
    crate::fixture::runtime().block_on(async {
        let js = async_nats::jetstream::new(async_nats::connect(nats.url()).await.unwrap());
        let until = Instant::now() + Duration::from_secs(60);
        while js.get_stream(name).await.map_or(0, |stream| stream.cached_info().state.messages) == 0 {
            assert!(Instant::now() < until, "timeout while waiting for the stream");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

#[test]
fn a_worker_waits_for_a_server_that_is_not_running() {
    let mut nats = NatsServer::start();
    let url = nats.url();
    nats.stop();
    let mut worker = arena(&["worker", "--allow-root", "--nats-url", &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(worker.stderr.take().unwrap());
    let mut summary = String::new();
    stderr.read_line(&mut summary).unwrap();
    assert!(summary.contains("no NATS server answers at nats://127.0.0.1:"), "{summary}");
    let rest = thread::spawn(move || std::io::read_to_string(stderr));
    nats.start_again();
    let mut line = String::new();
    let mut stdout = BufReader::new(worker.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains("takes games from nats://127.0.0.1:"), "{line}");
    kill_process(Pid::from_raw(worker.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
    let summary = finish(worker);
    assert_eq!(summary.code, 0, "{summary:#?}: {}", rest.join().unwrap().unwrap());
}
