//! All main pages on wide and narrow screens, in light and dark mode. They must be accessible and small, and nothing
//! may be cut off, overflow or overlap (`layout.js`). With `ARENA_SCREENSHOTS=FOLDER` (`cargo xtask screenshots`) the
//! test also takes pictures of the pages.

use std::fs;
use std::path::{Path, PathBuf};

use arena_testkit::{known_admin_token, until};
use serde_json::{Value, json};

use crate::driver::{Driver, Window};
use crate::program::{Running, file, folder, run};
use crate::world::{Bot, World, agent, example, rounder};

/// The limit in bytes for a page with all its resources.
const MOST_BYTES: u64 = 104_000;

/// Returns the cumulative layout shift of the page, without shifts soon after an input.
fn layout_shift(window: &Window<'_>) -> f64 {
    let script = "return new Promise((resolve) => {
        let sum = 0;
        const add = (list) => list.getEntries().forEach(({ hadRecentInput, value }) => { if (!hadRecentInput) sum += value; });
        new PerformanceObserver(add).observe({ type: 'layout-shift', buffered: true });
        setTimeout(() => resolve(sum), 50);
    })";
    window.run(script).as_f64().expect("a number")
}

/// Returns the script axe, which finds accessibility problems.
fn axe() -> String {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("tools/axe");
    let script = fs::read_to_string(home.join("axe.min.js"));
    script.unwrap_or_else(|error| panic!("this test needs axe ({error}); run `cargo xtask setup browser`"))
}

/// A page: its name, which is also that of its picture, its address, and the condition for being ready.
struct View {
    name: &'static str,
    url: String,
    ready: &'static str,
    /// The token to enter into the form of the page, if the page has a form.
    token: Option<String>,
}

/// An arena with content for every page, and the list of pages.
struct SiteFixture {
    world: World,
    viewer: Running,
    _bots: Vec<Bot>,
    views: Vec<View>,
}

impl SiteFixture {
    fn build(data: &Path) -> SiteFixture {
        let world = World::with_tournaments(data);
        let common =
            |sets: &[Vec<u64>; 2]| -> Vec<u64> { sets[0].iter().filter(|n| sets[1].contains(n)).copied().collect() };
        let both = |_: usize, sets: &[Vec<u64>; 2]| common(sets);
        let greedy =
            |seat: usize, sets: &[Vec<u64>; 2]| if seat == 0 { sets[1].clone() } else { common(sets)[..2].to_vec() };
        for users in [["ada", "grace"], ["grace", "alan"], ["alan", "ada"], ["edsger", "ada"], ["barbara", "grace"]] {
            world.play_psi(users, both);
        }
        let psi = world.play_psi(["mallory", "edsger"], greedy);
        world.play_psi(["barbara", "mallory"], |seat, sets| if seat == 0 { common(sets) } else { sets[0].clone() });
        let profile = json!({ "userId": "ada", "username": "Ada Lovelace", "model": "analytical-engine-2" });
        world.client.post("/api/users?from=ada", &profile);

        // A game of snake in progress.
        let (snake, seats) =
            world.create("snake", &json!({ "grid_width": 20, "grid_height": 20, "turnMs": 3_600_000 }));
        for (invite, user) in seats.iter().zip(["ada", "grace"]) {
            world.join(invite, user);
        }
        for epoch in 0..12 {
            for (seat, invite) in seats.iter().enumerate() {
                world.step(&snake, invite, epoch + seat);
            }
        }
        let (chess, sides) = world.create("chess", &json!({ "turnMs": 3_600_000 }));
        for (invite, user) in sides.iter().zip(["edsger", "barbara"]) {
            world.join(invite, user);
        }
        for step in ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6"] {
            // Both players send the move. The move out of turn is refused.
            let output = sides.iter().map(|invite| world.client.act(&chess, invite, "move", step).status);
            assert_eq!(output.filter(|status| *status == 200).count(), 1, "{step}");
        }
        let mover = sides.iter().find(|invite| world.client.act(&chess, invite, "move", "b5a4").status == 200).unwrap();
        let mover = sides.iter().find(|invite| *invite != mover).unwrap();
        let (catcher, pickers) = world.create("food-catcher", &json!({ "n_epochs": 300 }));
        let bots =
            pickers.iter().map(|invite| Bot::play(&world.server.url, invite, &example("food_catcher"))).collect();
        let (_, open) = world.create("psi", &json!({}));
        // A seat of each challenge with controls besides the board, while it is played.
        let hour = json!({ "turnMs": 3_600_000 });
        let [guess, bargain, wealth, diner, orders] = [
            ("psi", json!({})),
            ("ultimatum", json!({})),
            ("millionaire", json!({})),
            ("dining-cryptographers", json!({})),
            ("food-catcher", hour),
        ]
        .map(|(challenge, options)| {
            let (_, invites) = world.create(challenge, &options);
            for (seat, invite) in invites.iter().enumerate() {
                world.join(invite, ["ada", "grace", "alan"][seat % 3]);
            }
            format!("/play/{}", invites[0])
        });

        let names = [("turner", 3), ("looper", 4), ("circler", 5), ("wanderer", 2)];
        let agents = names.map(|(name, size)| world.upload(name, &rounder(size, 0)));
        let order = json!({ "game": "snake", "agents": agents, "seed": 3, "rounds": 4, "options": { "n_epochs": 60 }, "name": "Autumn cup" });
        let cup = world.order(&order);

        let replay = data.join("game.jsonl").to_str().unwrap().to_owned();
        let (one, other) = (agent(data, "one", &rounder(3, 0)), example("snake"));
        let plan = "match run snake --seed 7 --step-ms 20000 --set n_epochs=80 --replay";
        let mut args: Vec<&str> = plan.split(' ').chain([replay.as_str()]).collect();
        args.extend(["--agent", &other, "--agent", &one, "--agent", &other]);
        let recorded = run(&args);
        assert_eq!(recorded.code, 0, "{recorded:#?}");
        let viewer = Running::start_saying("replays are at ", &["replay", "serve", &replay], &[]);

        // The pages of a running tournament or game load more bytes, so both must end first.
        for (path, end) in
            [(format!("/api/tournaments/{cup}"), "\"complete\""), (format!("/sessions/{catcher}"), "Result")]
        {
            until(&format!("{path} ends"), || world.client.get(&path).text().contains(end));
        }

        let baselines = ["leaky", "careful", "greedy"].map(|name| format!("[[baselines]]\nagent = \"house:{name}\"\n"));
        let baselines = baselines.concat();
        let text = format!(
            "name = \"quick\"\nseeds = 10\n{baselines}[[challenges]]\nname = \"psi\"\n[[challenges]]\nname = \"ultimatum\"\n"
        );
        let quick = file(data, "quick.toml", &text);
        let out = data.join("evals/quick");
        let evaluated = run(&["eval", "run", &quick, "--out", out.to_str().unwrap()]);
        assert_eq!(evaluated.code, 0, "{evaluated:#?}");
        let reported = run(&["eval", "report", out.to_str().unwrap()]);
        assert_eq!(reported.code, 0, "{reported:#?}");
        let at_run = |rest: &str| format!("/evals/quick/{rest}");
        let index = world.client.get(&at_run("index.html")).text().to_owned();
        let game = index.split("href=\"games/").nth(1).and_then(|rest| rest.split('"').next()).unwrap();

        let live = "document.getElementById('connection').innerText === 'Live' && document.querySelector('.board')";
        let there = "document.querySelector('main')";
        let playing = "document.querySelector('#controls:not([hidden])')";
        let replayed = "performance.getEntriesByName('arena:frame').length";
        let at = |name, path: String, ready| View { name, url: world.page(&path), ready, token: None };
        let [waiting, left] = ["psi", "chess"].map(|challenge| {
            let place = world.client.post(&format!("/api/queue/{challenge}"), &json!({})).ok();
            format!("/queue/{challenge}/{}", place["ticket"].as_str().unwrap())
        });
        world.client.request("DELETE", &format!("/api{left}"), &[], b"").ok();
        let (wrong, right) = ("wrong".repeat(10), known_admin_token().reveal().to_owned());
        let views = vec![
            at("home", "/".to_owned(), there),
            at("components", "/components".to_owned(), there),
            at("challenges", "/challenges".to_owned(), there),
            at("challenge", "/challenges/psi".to_owned(), there),
            at("waiting", waiting, there),
            at("left", left, there),
            at("session", format!("/sessions/{psi}"), "document.body.innerText.includes('Result')"),
            at("snake", format!("/play/{}", seats[0]), live),
            at("chess", format!("/play/{mover}"), live),
            at(
                "map",
                format!("/sessions/{catcher}"),
                "document.body.innerText.includes('Result') && document.querySelector('canvas')",
            ),
            at("watched", format!("/sessions/{chess}"), live),
            at("seat", format!("/play/{}", open[0]), there),
            at("leaderboards", "/leaderboards".to_owned(), there),
            at("leaderboard", "/leaderboards/psi?compare=ada,mallory".to_owned(), there),
            at("guess", guess, playing),
            at("bargain", bargain, playing),
            at("wealth", wealth, playing),
            at("diner", diner, playing),
            at("orders", orders, playing),
            at("tournaments", "/tournaments".to_owned(), there),
            at("tournament", format!("/tournaments/{cup}"), "document.body.innerText.includes('complete')"),
            at("match", format!("/tournaments/{cup}/matches/1/replay"), "document.querySelector('.chart')"),
            at("agents", "/agents".to_owned(), there),
            at("log", "/log".to_owned(), "document.body.innerText.includes('agree with the checkpoint')"),
            at("agent", format!("/agents/{}", agents[0]), there),
            at("user", "/users/ada".to_owned(), there),
            at("talk", format!("/sessions/{psi}/replay#event=6"), replayed),
            at("events", format!("/sessions/{catcher}/replay#event=40"), "document.querySelector('#events canvas')"),
            at("evals", "/evals".to_owned(), there),
            at("eval", at_run("index.html"), there),
            at("games", at_run("challenge-1-1.html"), there),
            at("costs", at_run("costs.html"), there),
            at("game", at_run(&format!("games/{game}")), there),
            at("daily", "/daily".to_owned(), there),
            at("guide", "/docs/agents".to_owned(), there),
            at("guides", "/docs".to_owned(), "document.body.innerText.length > 1000"),
            at("docs", "/docs/api".to_owned(), "document.body.innerText.length > 1000"),
            at("missing", "/sessions/none".to_owned(), there),
            at(
                "nowhere",
                "/sesions".to_owned(),
                "document.querySelector('main')?.innerText.includes('Back to the home page')",
            ),
            // The wrong token comes first, because the browser keeps the right token until the window closes.
            View {
                token: Some(wrong),
                ..at("door", "/admin".to_owned(), "document.querySelector('#refusal:not([hidden])')")
            },
            View { token: Some(right), ..at("admin", "/admin".to_owned(), "document.querySelector('#bans *')") },
            View { name: "replay", url: viewer.url.clone(), ready: "document.querySelector('.chart')", token: None },
        ];
        SiteFixture { world, viewer, _bots: bots, views }
    }
}

impl World {
    /// Makes a step that the snake survives, if such a step exists.
    fn step(&self, session: &str, invite: &str, turn: usize) {
        let state = self.state(session);
        let snakes = state["snakes"].as_object().unwrap();
        let taken: Vec<&Value> = snakes.values().flat_map(|snake| snake["positions"].as_array().unwrap()).collect();
        let head = |id: &str| [0, 1].map(|axis| snakes[id]["head_position"][axis].as_i64().unwrap());
        let [x, y] = head(invite);
        let [other_x, other_y] = head(snakes.keys().find(|id| *id != invite).unwrap());
        let food = state["foods"].as_array().unwrap().get(turn % 3).cloned().unwrap_or(json!([10, 10]));
        let steps = [("UP", 0, -1), ("RIGHT", 1, 0), ("DOWN", 0, 1), ("LEFT", -1, 0)]
            .map(|(name, dx, dy)| (name, x + dx, y + dy));
        let free = steps
            .into_iter()
            .filter(|(_, x, y)| (0..20).contains(x) && (0..20).contains(y) && !taken.contains(&&json!([x, y])));
        let far = |(_, x, y): &(&str, i64, i64)| {
            // In a cell that the other snake's head can reach, the snakes could collide.
            let is_in_reach = (x - other_x).abs() + (y - other_y).abs() <= 1;
            (is_in_reach, (x - food[0].as_i64().unwrap()).abs() + (y - food[1].as_i64().unwrap()).abs())
        };
        let step = free.min_by_key(far).map_or("UP", |(name, ..)| name);
        self.client.act(session, invite, "move", step).ok();
    }
}

/// Returns the serious faults that axe finds, each with its element. An empty list of `rules` means all rules. `part`
/// is the selector of the checked part of the page; `None` means the whole page.
fn barriers(window: &Window<'_>, axe: &str, rules: &[&str], part: Option<&str>) -> Vec<String> {
    // The script is loaded through the browser's own protocol, because the page's policy forbids other scripts.
    if window.run("return 'axe' in window") == json!(false) {
        window.devtools("Runtime.evaluate", &json!({ "expression": axe }));
    }
    let rules = if rules.is_empty() { json!({}) } else { json!({ "runOnly": rules }) };
    let script = "const [rules, part, done] = arguments; const tell = ({ id, help, nodes }) => `${id} (${help}): ` + \
            nodes.slice(0, 4).map(({ target, any }) => `${target.join(' ')} ${any[0]?.message ?? ''}`).join(', '); \
        axe.run(part ?? document, { resultTypes: ['violations'], ...rules }).then(({ violations }) => \
            done(violations.filter(({ impact }) => ['serious', 'critical'].includes(impact)).map(tell)), (error) => done([String(error)]));";
    let output = window.run_slowly(script, &[rules, json!(part)]);
    output.as_array().unwrap().iter().map(|line| line.as_str().unwrap_or_default().to_owned()).collect()
}

/// Returns the tables that are wider than their container, with hidden columns.
fn cut_off(window: &Window<'_>) -> Vec<String> {
    let output = window.run(
        "return [...document.querySelectorAll('.scroll')].filter((place) => place.scrollWidth > place.clientWidth + 1) \
            .map((place) => `${place.id} ${place.innerText.slice(0, 40)}: ${place.scrollWidth} of ${place.clientWidth} pixels`)",
    );
    output.as_array().unwrap().iter().map(|line| line.as_str().unwrap_or_default().to_owned()).collect()
}

/// Returns the transferred bytes of a page with all its resources, and the milliseconds until its first paint.
fn cost(window: &Window<'_>) -> (u64, f64) {
    window.wait("performance.getEntriesByName('first-contentful-paint').length > 0");
    let output = window.run(
        "const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')] \
            .filter(({ name }) => !name.includes('/ws/') && !/replay\\.(jsonl|index)$|\\/events\\?|\\/metrics$/.test(name)); \
         return [all.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0), \
            performance.getEntriesByName('first-contentful-paint')[0].startTime]",
    );
    (output[0].as_u64().unwrap(), output[1].as_f64().unwrap())
}

#[test]
fn faults_of_a_layout_are_found() {
    let data = folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let window = driver.window();
    window.look(360, false);
    window.open(&world.page("/challenges"));
    assert_eq!(window.misfits(), Vec::<String>::new());
    let faults = [
        (
            "is cut off",
            "add('p', 'A text beyond its box', { width: '40px', overflow: 'hidden', whiteSpace: 'nowrap' })",
        ),
        ("px wide, the screen", "add('p', 'Wide', { minWidth: '900px' })"),
        (
            " overlap: ",
            "for (const name of ['One', 'Two']) add('button', name, { display: 'flex', width: '90px', height: '40px', margin: '0 0 -15px' })",
        ),
        ("lie over each other", "for (const name of ['One', 'Two']) add('p', name, { height: '2px', margin: '0' })"),
    ];
    for (expected, script) in faults {
        window.run(&format!(
            "const add = (tag, text, style) => {{ const made = document.createElement(tag); made.textContent = text; \
             made.className = 'made'; Object.assign(made.style, style); document.querySelector('main').append(made); }}; {script}"
        ));
        let found = window.misfits();
        assert!(found.iter().any(|fault| fault.contains(expected)), "{expected}: {found:?}");
        window.run("for (const made of document.querySelectorAll('.made')) made.remove()");
    }
}

#[test]
fn pages_are_accessible_on_every_screen() {
    let data = folder();
    let fixture = SiteFixture::build(data.path());
    let axe = axe();
    let pictures = std::env::var_os("ARENA_SCREENSHOTS").map(PathBuf::from);
    let driver = Driver::start();
    let mut faults = Vec::new();
    let mut costs = String::new();
    for width in [1280, 360] {
        let window = driver.window();
        window.excuse("status of 404");
        window.excuse("status of 401");
        for view in &fixture.views {
            window.look(width, false);
            window.devtools("Network.clearBrowserCache", &json!({}));
            window.open(&view.url);
            if let Some(token) = &view.token {
                window.fill("#token", token);
                window.click("#token-form button");
            }
            window.wait(view.ready);
            let (bytes, ms) = cost(&window);
            costs += &format!("{:>12} {width:>5} {bytes:>7} bytes {ms:>6.0} ms\n", view.name);
            // The page of routes grows with each route.
            let most = if view.name == "docs" { MOST_BYTES * 3 } else { MOST_BYTES };
            if bytes > most {
                faults.push(format!("{}: {bytes} bytes", view.name));
            }
            // Between the two widths: a tablet, and its window at 200 % zoom.
            for (between, percent) in [(768, 100), (768, 200)].into_iter().filter(|_| width == 1280) {
                window.zoom(between, percent);
                let found = window.misfits().into_iter();
                faults.extend(found.map(|fault| format!("{} at {between}, {percent} %: {fault}", view.name)));
            }
            for is_dark in [false, true] {
                window.look(width, is_dark);
                let place = format!("{} at {width}, {}", view.name, if is_dark { "dark" } else { "light" });
                // Colors don't change the layout.
                if !is_dark {
                    faults.extend(window.misfits().into_iter().map(|fault| format!("{place}: {fault}")));
                }
                // What is there doesn't jump while scripts fill the page.
                if (width, is_dark) == (1280, false) {
                    let shift = layout_shift(&window);
                    faults.extend((shift > 0.05).then(|| format!("{place}: the layout shifts by {shift:.3}")));
                }
                // Boards and the administrator's tables have to be visible as a whole on every screen.
                if ["home", "challenge", "admin"].contains(&view.name) {
                    faults.extend(
                        cut_off(&window).into_iter().map(|fault| format!("{place}: a table is cut off: {fault}")),
                    );
                }
                // All rules are checked once. The other screens are checked by the rules that depend on the screen:
                // contrast by the mode, scrolling by the width.
                let rules: &[&str] = match (width, is_dark) {
                    (1280, false) => &[],
                    (_, false) => &["scrollable-region-focusable", "target-size"],
                    _ => &["color-contrast"],
                };
                // On this page, axe takes as long as on all other pages together, so most checks are limited to one
                // section.
                let part = (view.name == "docs" && rules.len() != 2).then_some("#chat");
                let found = barriers(&window, &axe, rules, part);
                faults.extend(found.into_iter().map(|fault| format!("{place}: {fault}")));
                if let Some(folder) = &pictures {
                    let name = format!("{}-{width}-{}.webp", view.name, if is_dark { "dark" } else { "light" });
                    fs::write(folder.join(name), window.picture(width, if width == 360 { 1400 } else { 1000 }))
                        .unwrap();
                }
            }
        }
    }
    // The time to the first paint, which should be 200 ms, is only printed, because it is longer on a busy machine.
    println!("{costs}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    drop((fixture.world, fixture.viewer));
}
