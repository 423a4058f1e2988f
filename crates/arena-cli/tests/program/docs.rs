//! Runs the commands in README.md and docs as a new user would: page by page from top to bottom, in an empty folder, or
//! in a copy of the checkout where the page requires one.
//!
//! HTML comments in a page (`<!-- ci: … -->`) contain notes for this test. A note applies to the next block:
//!
//! | | |
//! |---|---|
//! | `checkout` | changes to a checkout |
//! | `empty` | changes to a new, empty folder |
//! | `start COMMAND`, `beside "COMMAND"` | starts a server; runs a command of the block in the background |
//! | `run COMMAND` | runs a command in place of one that this test skips |
//! | `skip REASON`, `skip "COMMAND" REASON` | skips the block, or the commands with this beginning, and prints the reason |
//! | `add "COMMAND" ARGUMENTS` | adds arguments that shorten the commands with this beginning |
//! | `replace "TEXT" OTHER` | replaces a text, such as a number of games, in the commands |
//! | `input "COMMAND" LINES` | the input of a command, with `\n` between lines |
//! | `exit CODE "COMMAND"` | the exit code, if it isn't 0 |
//!
//! A fenced block `output` contains the expected output of the commands before it: its lines must appear in that order,
//! except for numbers and ids.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::program::{Running, arena};

/// The time limit for a command. It is far longer than needed, because build machines are slow and busy.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The first words of command lines.
const COMMANDS: &str = "apt-get arena cargo cd certbot chmod cp createuser curl docker export git head install make mkdir mv nats-server \
    openssl pg_dump pip printf python python3 rm sed source sqlite3 systemctl tar target/release/arena tee";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[derive(Debug, PartialEq)]
enum Piece {
    /// A block of commands: the number of its first line, and its lines.
    Block(usize, Vec<String>),
    Output(usize, Vec<String>),
    Note(usize, String),
}

/// Splits a page into commands, their output, and notes for this test.
fn pieces(page: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut lines = page.lines().enumerate().map(|(number, line)| (number + 1, line)).peekable();
    while let Some((number, line)) = lines.next() {
        if let Some(note) = line.strip_prefix("<!-- ci: ") {
            pieces.push(Piece::Note(number, note.strip_suffix(" -->").unwrap().to_owned()));
        } else if let Some(language) = line.strip_prefix("```") {
            let block: Vec<String> = lines
                .by_ref()
                .map(|(_, line)| line)
                .take_while(|line| !line.starts_with("```"))
                .map(str::to_owned)
                .collect();
            match language {
                "sh" | "bash" | "console" => pieces.push(Piece::Block(number, commands(&block))),
                "output" => pieces.push(Piece::Output(number, block)),
                _ => {}
            }
        } else if let Some(first) = line.strip_prefix("    ") {
            let mut block = vec![first.to_owned()];
            while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with("    ") || line.is_empty()) {
                block.push(line.get(4..).unwrap_or_default().to_owned());
            }
            let commands = commands(&block);
            if !commands.is_empty() {
                pieces.push(Piece::Block(number, commands));
            }
        }
    }
    pieces
}

/// Returns the commands of a block. Lines after a backslash, or within quotes, continue a command.
fn commands(block: &[String]) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in block.iter().filter(|line| !line.trim().is_empty()) {
        let line = without_comment(line);
        if is_open {
            let last = commands.last_mut().unwrap();
            last.truncate(last.trim_end_matches('\\').trim_end().len());
            last.push(' ');
            last.push_str(line.trim());
        } else {
            commands.push(line.trim().to_owned());
        }
        let last = commands.last().unwrap();
        is_open = last.ends_with('\\') || last.matches('\'').count() % 2 == 1;
    }
    let is_command = |line: &str| {
        let word = line.split(' ').find(|word| !is_variable(word)).unwrap_or(line);
        COMMANDS.split(' ').any(|command| command == word) || is_variable(line.split(' ').next().unwrap_or_default())
    };
    // A block with a line that is no command contains no commands.
    if commands.iter().all(|line| is_command(line)) { commands } else { Vec::new() }
}

fn is_variable(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

fn without_comment(line: &str) -> &str {
    line.find("  # ").map_or(line, |at| &line[..at]).trim_end()
}

/// A new user: a shell, a folder, and values from earlier outputs.
struct Newcomer {
    page: &'static str,
    /// The folder that contains all other folders of the user.
    place: TempDir,
    shell: Child,
    folders: usize,
    commands: usize,
    port: u16,
    /// Values by placeholder.
    noted: BTreeMap<String, String>,
    /// Process groups in the background.
    background: Vec<Child>,
    log: String,
    skipped: Vec<String>,
}

impl Newcomer {
    fn new(page: &'static str) -> Newcomer {
        let place = tempfile::tempdir().unwrap();
        let bin = place.path().join("bin");
        fs::create_dir(&bin).unwrap();
        fs::create_dir(place.path().join("home")).unwrap();
        let program = PathBuf::from(arena(&[]).get_program());
        std::os::unix::fs::symlink(program, bin.join("arena")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut shell = Command::new("bash");
        for (name, value) in arena(&[]).get_envs() {
            if value.is_none() {
                shell.env_remove(name);
            }
        }
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        shell.env("PATH", path).env("HOME", place.path().join("home")).env("CHECKOUT", root());
        shell.env("PORT", port.to_string()).env("ARENA_URL", format!("http://127.0.0.1:{port}"));
        shell.arg("--noprofile").arg("--norc").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let shell = shell.current_dir(place.path()).process_group(0).spawn().unwrap();
        let (noted, log) = (BTreeMap::new(), String::new());
        let (background, skipped) = (Vec::new(), Vec::new());
        let mut newcomer =
            Newcomer { page, place, shell, folders: 0, commands: 0, port, noted, background, log, skipped };
        newcomer.enter_folder(false);
        newcomer
    }

    /// Changes to a new folder: an empty one, or a copy of the checkout without build products.
    fn enter_folder(&mut self, is_checkout: bool) {
        self.folders += 1;
        let folder = self.place.path().join(format!("folder{}", self.folders));
        fs::create_dir(&folder).unwrap();
        if is_checkout {
            for name in ["clients", "docs", "examples"] {
                let copied = Command::new("cp").arg("-r").arg(root().join(name)).arg(&folder).status().unwrap();
                assert!(copied.success());
            }
        }
        self.run(&format!("cd {}", folder.display()), None, 0);
    }

    /// Runs a command in the shell and waits for it. Returns its output.
    #[track_caller]
    fn run(&mut self, command: &str, input: Option<&str>, code: i32) -> String {
        self.commands += 1;
        let at = |ending: &str| self.place.path().join(format!("{}.{ending}", self.commands));
        let (out, err, done, typed) = (at("out"), at("err"), at("done"), at("in"));
        fs::write(&typed, input.unwrap_or_default()).unwrap();
        let script = format!(
            "{{ {command}\n}} < {} > {} 2> {}; echo $? > {}.part; mv {}.part {}\n",
            typed.display(),
            out.display(),
            err.display(),
            done.display(),
            done.display(),
            done.display()
        );
        self.shell.stdin.as_mut().unwrap().write_all(script.as_bytes()).unwrap();
        let by = Instant::now() + TIMEOUT;
        while !done.exists() {
            let is_alive = self.shell.try_wait().unwrap().is_none();
            assert!(is_alive && Instant::now() < by, "{}: `{command}` doesn't end\n{}", self.page, self.log);
            thread::sleep(Duration::from_millis(10));
        }
        let outcome = String::from_utf8_lossy(&fs::read(&out).unwrap()).into_owned();
        let errors = String::from_utf8_lossy(&fs::read(&err).unwrap()).into_owned();
        let got: i32 = fs::read_to_string(&done).unwrap().trim().parse().unwrap();
        let _ = writeln!(self.log, "$ {command}\n{outcome}{errors}");
        assert_eq!(got, code, "{}: unexpected exit code of `{command}`\n{}", self.page, self.log);
        outcome
    }

    /// Starts a background command, and waits until it prints that it is ready.
    #[track_caller]
    fn start(&mut self, command: &str, sign: &str) {
        self.commands += 1;
        let out = self.place.path().join(format!("{}.out", self.commands));
        // The background command gets the shell's folder and exported variables.
        let log = self.log.len();
        let state = self.run("pwd; export -p", None, 0);
        self.log.truncate(log);
        let (folder, exports) = state.split_once('\n').unwrap();
        let script = format!("{exports}\ncd {folder}\nexec > {} 2>&1\n{command}", out.display());
        let mut child = Command::new("bash");
        child.args(["--noprofile", "--norc", "-c", &script]).stdin(Stdio::null()).process_group(0);
        let mut child = child.spawn().unwrap();
        let by = Instant::now() + TIMEOUT;
        loop {
            let outcome = fs::read_to_string(&out).unwrap_or_default();
            if outcome.contains(sign) {
                let _ = writeln!(self.log, "$ {command} &\n{outcome}");
                break;
            }
            let is_alive = child.try_wait().unwrap().is_none();
            assert!(
                is_alive && Instant::now() < by,
                "{}: `{command}` doesn't become ready:\n{outcome}\n{}",
                self.page,
                self.log
            );
            thread::sleep(Duration::from_millis(10));
        }
        self.background.push(child);
    }

    fn end_background(&mut self) {
        for mut child in self.background.drain(..) {
            let group = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
            // The process may have ended by itself.
            let _ = kill_process_group(group, Signal::TERM);
            let by = Instant::now() + Duration::from_secs(20);
            while child.try_wait().unwrap().is_none() && Instant::now() < by {
                thread::sleep(Duration::from_millis(10));
            }
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
        }
    }

    /// Replaces placeholders with their values.
    fn fill_in(&self, command: &str) -> String {
        let mut filled = command.replace(":3001", &format!(":{}", self.port));
        // The longest placeholders are replaced first, because `ID-OF-ONE` contains `ID`.
        let mut noted: Vec<(&String, &String)> = self.noted.iter().collect();
        noted.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        for (name, value) in noted {
            filled = replace_word(&filled, name, value);
        }
        filled
    }

    /// Stores the values in an output that later commands need.
    fn note(&mut self, outcome: &str) {
        let Some(at) = outcome.find('{') else { return };
        let Some(Ok(value)) =
            serde_json::Deserializer::from_str(&outcome[at..]).into_iter::<serde_json::Value>().next()
        else {
            return;
        };
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        if let Some(id) = text("id") {
            let name = match text("name").as_deref() {
                Some("one") => "ID-OF-ONE",
                Some("two") => "ID-OF-TWO",
                _ => "ID",
            };
            self.noted.insert(name.to_owned(), id.clone());
            self.noted.insert("CHANNEL".to_owned(), id.clone());
            self.noted.insert("SESSION".to_owned(), id);
            self.noted.insert("INDEX".to_owned(), "1".to_owned());
        }
        for (place, invite) in value["invites"].as_array().into_iter().flatten().enumerate() {
            let letter = char::from(b'A' + u8::try_from(place).unwrap());
            let invite = invite.as_str().unwrap().to_owned();
            if place == 0 {
                self.noted.insert("inv_…".to_owned(), invite.clone());
            }
            self.noted.insert(format!("inv_{letter}…"), invite);
        }
        if let Some(key) = text("sessionKey") {
            self.noted.insert(format!("{}…", &key[..4]), key);
        }
        if let Some(key) = text("creatorKey") {
            self.noted.insert("o_…".to_owned(), key);
        }
        if let Some(user) = text("userId") {
            self.noted.insert("USERID".to_owned(), user);
        }
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.end_background();
        let group = Pid::from_raw(self.shell.id().try_into().unwrap()).unwrap();
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.shell.wait();
    }
}

/// Replaces `word` by `by` where it is a whole word.
fn replace_word(text: &str, word: &str, by: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let (mut done, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(word) {
        let after = &rest[at + word.len()..];
        let is_whole = !rest[..at].chars().next_back().or(done.chars().next_back()).is_some_and(is_part)
            && !after.chars().next().is_some_and(is_part);
        done.push_str(&rest[..at]);
        done.push_str(if is_whole { by } else { word });
        rest = after;
    }
    done + rest
}

#[derive(Default)]
struct Notes {
    skip: Option<String>,
    /// Beginnings of skipped commands, and the reasons.
    skips: Vec<(String, String)>,
    adds: Vec<(String, String)>,
    /// Texts, and those in their place.
    replacements: Vec<(String, String)>,
    inputs: Vec<(String, String)>,
    codes: Vec<(String, i32)>,
    beside: Vec<(String, ())>,
}

/// Splits `"COMMAND" REST`. Commands that contain quotes are in backticks.
fn quoted(text: &str) -> Option<(String, String)> {
    let quote = text.chars().next().filter(|quote| ['"', '`'].contains(quote))?;
    let (command, rest) = text[1..].split_once(quote)?;
    Some((command.to_owned(), rest.trim_start().to_owned()))
}

fn of<'a, T>(list: &'a [(String, T)], command: &str) -> Option<&'a T> {
    list.iter().find(|(begin, _)| command.starts_with(begin.as_str())).map(|(_, value)| value)
}

/// Reduces a line to the part that is the same in all runs, without digits, long hexadecimal numbers and spaces.
fn shape(line: &str) -> String {
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        let is_id = word.len() >= 8 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        let digits: String = word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        let mut short = String::new();
        for c in digits.chars() {
            if !(c == '0' && short.ends_with('0')) {
                short.push(c);
            }
        }
        words.push(if is_id { "ID".to_owned() } else { short });
    }
    words.join(" ")
}

#[expect(clippy::print_stdout, reason = "shown with `--nocapture`, and where a test fails")]
fn run_page(page: &'static str) {
    let text = fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    let mut newcomer = Newcomer::new(page);
    let mut notes = Notes::default();
    let mut outcome = String::new();
    for piece in pieces(&text) {
        match piece {
            Piece::Note(line, note) => {
                let (what, rest) = note.split_once(' ').unwrap_or((&note, ""));
                match (what, quoted(rest)) {
                    ("checkout", _) => newcomer.enter_folder(true),
                    ("empty", _) => newcomer.enter_folder(false),
                    ("start", _) => newcomer.start(rest, "listens on http"),
                    ("beside", Some((command, _))) => notes.beside.push((command, ())),
                    ("run", _) => {
                        let command = newcomer.fill_in(rest);
                        let outcome = newcomer.run(&command, None, 0);
                        newcomer.note(&outcome);
                    }
                    ("skip", None) => notes.skip = Some(rest.to_owned()),
                    ("skip", Some(skip)) => notes.skips.push(skip),
                    ("add", Some(add)) => notes.adds.push(add),
                    ("replace", Some(replacement)) => notes.replacements.push(replacement),
                    ("input", Some((command, lines))) => {
                        notes.inputs.push((command, lines.replace("\\n", "\n") + "\n"))
                    }
                    ("exit", _) => {
                        let (code, command) = rest.split_once(' ').unwrap();
                        notes.codes.push((command.trim_matches('"').to_owned(), code.parse().unwrap()));
                    }
                    _ => panic!("{page}:{line}: {note}"),
                }
            }
            Piece::Block(line, commands) => {
                let notes = std::mem::take(&mut notes);
                if let Some(reason) = notes.skip {
                    newcomer.skipped.push(format!("{page}:{line}: {reason}"));
                    continue;
                }
                for (text, _) in &notes.replacements {
                    assert!(commands.iter().any(|command| command.contains(text)), "{page}:{line}: no {text}");
                }
                outcome.clear();
                for command in commands {
                    if let Some(reason) = of(&notes.skips, &command) {
                        newcomer.skipped.push(format!("{page}:{line}: {command}: {reason}"));
                        continue;
                    }
                    let mut filled = newcomer.fill_in(&command);
                    assert!(!filled.contains('…'), "{page}:{line}: no value for a placeholder in {filled}");
                    for (text, other) in &notes.replacements {
                        filled = filled.replace(text, other);
                    }
                    if let Some(more) = of(&notes.adds, &command) {
                        filled = match filled.split_once(" -- ") {
                            Some((own, others)) => format!("{own} {more} -- {others}"),
                            None => format!("{filled} {more}"),
                        };
                    }
                    let stays = filled
                        .strip_suffix('&')
                        .map(str::trim_end)
                        .or(of(&notes.beside, &command).map(|()| filled.as_str()));
                    let words = |begin: &str| {
                        filled == begin
                            || filled.starts_with(&format!("{begin} "))
                            || filled.contains(&format!(" {begin} "))
                    };
                    if words("arena serve") || words("arena demo") {
                        // The previous server ends first, because it uses the same address and data.
                        newcomer.end_background();
                        newcomer.start(stays.unwrap_or(&filled), "listens on http");
                    } else if words("arena replay serve") {
                        newcomer.start(&filled, "replays are at http://");
                    } else if words("curl -N") {
                        newcomer.start(&filled, "data:");
                    } else if words("nats-server") {
                        newcomer.start(&format!("{filled} 2>&1"), "Server is ready");
                    } else if let Some(command) = stays {
                        newcomer.start(command, "");
                    } else {
                        let input = of(&notes.inputs, &command).map(String::as_str);
                        let code = of(&notes.codes, &command).copied().unwrap_or(0);
                        let answer = newcomer.run(&filled, input, code);
                        assert!(
                            !words("curl") || !answer.contains("\"code\":"),
                            "{page}:{line}: {filled} was refused\n{}",
                            newcomer.log
                        );
                        newcomer.note(&answer);
                        outcome.push_str(&answer);
                    }
                }
            }
            Piece::Output(line, expected) => {
                let mut shapes = outcome.lines().map(shape);
                for expected in expected.iter().filter(|expected| !expected.trim().is_empty() && expected.trim() != "…")
                {
                    assert!(
                        shapes.any(|there| there == shape(expected)),
                        "{page}:{line}: the output lacks this line: {expected}\n{outcome}\n{}",
                        newcomer.log
                    );
                }
            }
        }
    }
    for skipped in &newcomer.skipped {
        println!("skipped: {skipped}");
    }
    println!("{page}: {} commands", newcomer.commands);
}

macro_rules! pages {
    ($($name:ident: $page:literal),* $(,)?) => {
        $(#[test]
        fn $name() {
            run_page($page);
        })*
        const RUN: &[&str] = &[$($page),*];
    };
}

pages! {
    readme: "README.md",
    python: "clients/python/README.md",
    administration: "docs/administration.md",
    agents: "docs/agents.md",
    archive: "docs/archive.md",
    authentication: "docs/authentication.md",
    chess: "docs/chess.md",
    cluster: "docs/cluster.md",
    coming_from: "docs/coming-from.md",
    command_line_agents: "docs/command-line-agents.md",
    environments: "docs/environments.md",
    evaluations: "docs/evaluations.md",
    first_win: "docs/first-win.md",
    hosting: "docs/hosting.md",
    ladders: "docs/ladders.md",
    models: "docs/models.md",
    nodes: "docs/nodes.md",
    one_arena: "docs/one-arena.md",
    play: "docs/play.md",
    postgres: "docs/postgres.md",
    python_functions: "docs/python-functions.md",
    records: "docs/records.md",
    replays: "docs/replays.md",
    sandbox: "docs/sandbox.md",
    scores: "docs/scores.md",
    scoring_strategies: "docs/scoring-strategies.md",
    server_tournaments: "docs/server-tournaments.md",
    statistics: "docs/statistics.md",
    tournaments: "docs/tournaments.md",
    verifying: "docs/verifying.md",
    workers: "docs/workers.md",
    writing_challenges: "docs/writing-challenges.md",
    example_agents: "examples/agents/README.md",
    example_challenges: "examples/challenges/README.md",
    example_environments: "examples/environments/README.md",
    example_evals: "examples/eval/README.md",
}

#[test]
fn every_page_is_run_or_has_no_commands() {
    let mut there = vec!["README.md".to_owned()];
    let folders = [
        "clients/python",
        "docs",
        "docs/games",
        "examples/agents",
        "examples/challenges",
        "examples/environments",
        "examples/eval",
        "examples/scoring",
    ];
    for folder in folders {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                there.push(format!("{folder}/{name}"));
            }
        }
    }
    for page in there.iter().filter(|page| !RUN.contains(&page.as_str())) {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let blocks: Vec<Piece> = pieces(&text).into_iter().filter(|piece| matches!(piece, Piece::Block(..))).collect();
        assert_eq!(blocks, [], "{page} has commands, but isn't listed as such");
    }
}

/// Runs the health check of the Docker image, without building the image.
#[test]
fn the_health_check_of_the_image_follows_the_settings() {
    let dockerfile = fs::read_to_string(root().join("Dockerfile")).unwrap();
    assert!(dockerfile.contains("CMD [\"arena-health\", \"/health\"]"), "{dockerfile}");
    let check = |server: &Running, path: &str| {
        let port = server.url.rsplit_once(':').unwrap().1.trim_end_matches('/').to_owned();
        let script = root().join("examples/deploy/health.sh");
        Command::new("bash").arg(script).args([path, &port]).output().unwrap().status.success()
    };
    let data = tempfile::tempdir().unwrap();
    let file = |name: &str| root().join("crates/arena-cli/tests/tls").join(name).display().to_string();
    let tls =
        format!("[network]\ntls = {{ certificate = {:?}, key = {:?} }}\n", file("server.pem"), file("server.key"));
    for (name, settings) in [("plain", ""), ("tls", &*tls)] {
        let config = data.path().join(format!("{name}.toml"));
        fs::write(&config, settings).unwrap();
        let folder = data.path().join(name);
        let args = ["serve", "--listen", "127.0.0.1:0", "--config", config.to_str().unwrap(), "--data"];
        let mut server = Running::start(&[&args[..], &[folder.to_str().unwrap()]].concat());
        assert!(check(&server, "/health") && check(&server, "/ready"), "{name}");
        assert!(!check(&server, "/nowhere"), "{name}");
        server.signal(Signal::KILL);
        server.ended();
        assert!(!check(&server, "/health"), "{name}");
    }
}

#[test]
fn blocks_are_parsed_into_commands() {
    let page = "\
Text.

    arena serve &                 # with a comment
    arena match run snake \\
        --agent a

    curl -d '{\"a\":
        1}' http://x

<!-- ci: skip \"curl\" because -->

    not a command
    arena

```sh
FOO=1 arena demo
```

```output
7 games, 12 wins
```
";
    let block = |line: usize, lines: &[&str]| Piece::Block(line, lines.iter().map(|line| (*line).to_owned()).collect());
    assert_eq!(
        pieces(page),
        [
            block(3, &["arena serve &", "arena match run snake --agent a", "curl -d '{\"a\": 1}' http://x"]),
            Piece::Note(10, "skip \"curl\" because".to_owned()),
            block(15, &["FOO=1 arena demo"]),
            Piece::Output(19, vec!["7 games, 12 wins".to_owned()]),
        ]
    );
    assert_eq!(shape("7 games,  12 wins 0123abcd-99"), shape("123 games, 4 wins ffff0000-1111"));
    assert_ne!(shape("7 games"), shape("7 wins"));
    assert_eq!(replace_word("ID ID-OF-ONE challenge_ID& IDs", "ID", "7"), "7 ID-OF-ONE challenge_7& IDs");
}
