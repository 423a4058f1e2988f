//! The controls of a seat: a person plays each challenge to its end by mouse, keyboard or touch, against players that
//! use the HTTP API. `play.rs` has private set intersection and snake.

use arena_testkit::data_folder;
use serde_json::{Value, json};

use crate::driver::{Driver, Window};
use crate::world::World;

/// Joins all seats, the first one as the person, and opens the person's page.
#[track_caller]
fn sit_down(world: &World, window: &Window<'_>, invites: &[String]) {
    for (seat, invite) in invites.iter().enumerate() {
        world.join(invite, &format!("player-{seat}"));
    }
    window.open(&world.page(&format!("/play/{}", invites[0])));
    window.wait("document.querySelector('#controls:not([hidden])')");
}

/// Waits until the page says that it is the person's turn, in the banner, the title and the icon.
#[track_caller]
fn is_to_move(window: &Window<'_>) {
    window.wait("document.getElementById('turn-title').innerText === 'Your move'");
    window.wait("document.title.startsWith('● Your move')");
    window.wait("document.querySelector('link[rel=icon]').href.endsWith('/icon-turn.svg')");
}

/// Waits until the banner has this text, and the title and the icon are the usual ones.
#[track_caller]
fn is_waiting(window: &Window<'_>, text: &str) {
    window.wait(&format!("document.getElementById('turn').innerText.includes({})", json!(text)));
    window.wait("!document.title.startsWith('●')");
    window.wait("!document.querySelector('link[rel=icon]').href.endsWith('/icon-turn.svg')");
}

/// Waits for the end of the game, and checks that the banner and the controls are gone.
#[track_caller]
fn has_ended(window: &Window<'_>) {
    window.see("Rematch");
    window.see("Watch the replay");
    window.wait("document.getElementById('turn').hidden && document.getElementById('controls').hidden");
}

/// Checks that the layout has no faults, and that the controls name no player by invite.
#[track_caller]
fn fits(window: &Window<'_>) {
    assert_eq!(window.misfits(), Vec::<String>::new());
    let texts = ["#controls", "#turn", "#seat"].map(|place| window.text(place));
    assert!(texts.iter().all(|text| !text.contains("inv_")), "{texts:?}");
}

#[test]
fn a_person_says_by_mouse_which_millionaire_is_richer() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let person = driver.window();
    let (session, invites) = world.create("millionaire", &json!({}));
    sit_down(&world, &person, &invites);
    is_to_move(&person);
    let own = person.wait("/^\\$(\\d+)M$/.exec(document.querySelector('.controls .figure').innerText)?.[1]");
    let own: u64 = own.as_str().unwrap().parse().unwrap();
    // The richest and the poorest player have one choice less.
    let side = if own < 100 { "richer" } else { "poorer" };
    person.click(&format!("[data-side={side}]"));
    person.wait(&format!("document.getElementById('send-guess').innerText.endsWith('M: Player 2 is {side}')"));
    fits(&person);
    person.click("#send-guess");
    is_waiting(&person, "Waiting for Player 2");
    person.see("It is final.");
    world.client.act(&session, &invites[1], "guess", &own.to_string()).ok();
    has_ended(&person);
}

#[test]
fn a_person_bargains_by_touch_on_a_narrow_screen() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let person = driver.window();
    person.look(360, false);
    let (session, invites) = world.create("ultimatum", &json!({ "maxRounds": 3 }));
    sit_down(&world, &person, &invites);
    is_to_move(&person);
    person.see("There is no offer yet. Round 1 of 3.");
    person.run("const slider = document.getElementById('share-1'); slider.value = 48; slider.dispatchEvent(new Event('input'))");
    person.see("You keep 52.");
    fits(&person);
    person.wait("document.getElementById('send-offer').innerText === 'Offer 48 to Player 2'");
    person.tap("#send-offer");
    is_waiting(&person, "Waiting for Player 2");
    world.client.act(&session, &invites[1], "submit_offer", "39, 61").ok();
    is_to_move(&person);
    person.see("Player 2 offers you 39 of 100. Round 2 of 3.");
    person.tap("#reject");
    is_waiting(&person, "Round 2 of 3.");
    world.client.act(&session, &invites[1], "submit_offer", "45, 55").ok();
    is_to_move(&person);
    person.wait("document.getElementById('accept').innerText === 'Accept 45'");
    person.tap("#accept");
    has_ended(&person);
}

#[test]
fn a_person_names_a_diner_or_none_by_the_keyboard() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let person = driver.window();
    let (session, invites) = world.create("dining-cryptographers", &json!({}));
    sit_down(&world, &person, &invites);
    is_to_move(&person);
    person.enter("[data-diner='1']");
    person.wait("document.getElementById('send-guess').innerText === 'Guess: Player 2 paid'");
    person.enter("[data-answer=internal]");
    person.wait("document.getElementById('send-guess').innerText === 'Guess: One of us paid'");
    person.wait("document.querySelectorAll('#controls [aria-pressed=true]').length === 1");
    fits(&person);
    person.enter("#send-guess");
    is_waiting(&person, "Waiting for Player 2 and Player 3.");
    for invite in &invites[1..] {
        world.client.act(&session, invite, "guess", "unknown").ok();
    }
    has_ended(&person);
}

#[test]
fn a_pawn_is_promoted_by_a_choice_of_four_pieces() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    // The server draws the colors, so both seats have a page.
    let windows = [driver.window(), driver.window()];
    let (_, invites) = world.create("chess", &json!({ "fen": "7k/P7/8/8/8/8/8/K7 w - - 0 1" }));
    for invite in &invites {
        world.join(invite, "ada");
    }
    for (window, invite) in windows.iter().zip(&invites) {
        window.look(360, false);
        window.open(&world.page(&format!("/play/{invite}")));
        window.wait("document.querySelector('#board svg')");
    }
    let is_white = windows[0].wait("/You: (White|Black)/.exec(document.querySelector('.standing').innerText)?.[1]")
        == json!("White");
    let white = if is_white { &windows[0] } else { &windows[1] };
    is_to_move(white);
    let promote = || {
        white.tap("[data-square=a7]");
        white.tap("[data-square=a8]");
        white.wait("document.querySelectorAll('dialog [data-piece]').length === 4");
    };
    promote();
    // A canceled choice makes no move.
    white.tap("dialog > .btn");
    white.wait("!document.querySelector('dialog')");
    promote();
    fits(white);
    white.tap("[data-piece=n]");
    for window in &windows {
        has_ended(window);
    }
    white.wait("document.querySelector('#board svg').getAttribute('aria-label').includes('last move a7a8n')");
}

/// Plays the turns of a game on a map: `order` gives the orders of the first turn, `send` sends those of each turn. Without
/// `send`, the page sends them by itself.
#[track_caller]
fn forage(
    world: &World,
    person: &Window<'_>,
    challenge: &str,
    order: impl Fn(&Window<'_>),
    send: Option<fn(&Window<'_>)>,
) -> Value {
    const TURNS: usize = 4;
    let (session, invites) = world.create(challenge, &json!({ "n_epochs": TURNS }));
    sit_down(world, person, &invites);
    person.wait("document.querySelector('#board canvas')");
    for turn in 1..=TURNS {
        let summary = "document.getElementById('orders-summary').innerText";
        person.wait(&format!("{summary}.startsWith('Turn {turn} of {TURNS}.')"));
        if turn == 1 {
            person.wait("document.getElementById('send-orders').innerText === 'Skip this turn'");
            order(person);
        }
        person.wait("document.getElementById('send-orders').innerText === 'Send orders'");
        if turn == 1 {
            fits(person);
        }
        if let Some(send) = send {
            is_to_move(person);
            send(person);
        }
        is_waiting(person, "Waiting for Player 2");
        world.client.act(&session, &invites[1], "actions", "[]").ok();
    }
    has_ended(person);
    let path = format!("/api/chat/sync?channel=challenge_{session}&from={}&limit=1000", invites[0]);
    let log = world.client.get(&path).ok();
    let sent = log["messages"].as_array().unwrap().iter().filter(|message| message["from"] == json!(invites[0]));
    let orders = sent.map(|message| {
        let content = message["content"].as_str().unwrap().strip_prefix("(actions) ").unwrap();
        serde_json::from_str(content).unwrap_or_else(|error| panic!("{error} in {message}"))
    });
    Value::Array(orders.collect())
}

#[test]
fn a_person_gives_orders_on_a_map_and_the_page_goes_on_by_itself() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let person = driver.window();
    let gather = |window: &Window<'_>| {
        window.click("#auto");
        window.click("#gather");
    };
    let sent = forage(&world, &person, "food-catcher", gather, Some(|window| window.click("#send-orders")));
    assert_eq!(sent.as_array().map(Vec::len), Some(4), "{sent}");
    let all: Vec<&Value> = sent.as_array().unwrap().iter().collect();
    assert!(all.iter().all(|orders| orders.as_array().is_some_and(|list| list.len() == 1)), "{sent}");

    // A click on the map is a target, and a narrow screen has the same controls.
    person.look(360, true);
    let middle = |window: &Window<'_>| window.tap("#board canvas");
    let sent = forage(&world, &person, "cherry-picker", middle, None);
    let first = &sent[0][0];
    assert!(first["target"].is_array() || first["food_id"].is_string(), "{sent}");
    assert_eq!(sent.as_array().map(Vec::len), Some(4), "{sent}");
}

/// All food is in reach of the base, so that an actor gathers without an order.
#[test]
fn an_actor_on_food_and_on_a_base_gathers_by_itself() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let person = driver.window();
    let (session, invites) = world.create("food-catcher", &json!({ "n_epochs": 4, "take_food_max_distance": 100 }));
    sit_down(&world, &person, &invites);
    // The map fits on the screens of laptops, with all controls, and of phones.
    for (size, last) in [([1366, 620], "#auto"), ([390, 844], ".standing")] {
        person.look_at(size, false);
        person.shows("#board canvas");
        person.shows(last);
    }
    for _ in 0..4 {
        is_waiting(&person, "Waiting for Player 2");
        world.client.act(&session, &invites[1], "actions", "[]").ok();
    }
    has_ended(&person);
    let state = world.state(&session);
    let food = state["bases"].as_array().unwrap().iter().find(|base| base["owner_id"] == json!(invites[0]));
    assert!(food.unwrap()["food"].as_f64().unwrap() > 0.0, "{state}");
}

#[test]
fn a_page_of_a_seat_shows_who_is_missing_and_whose_seat_it_is() {
    let data = data_folder();
    let world = World::start(data.path(), &[]);
    let driver = Driver::start();
    let person = driver.window();
    let (_, invites) = world.create("dining-cryptographers", &json!({}));
    world.join(&invites[0], "ada");
    person.open(&world.page(&format!("/play/{}", invites[0])));
    is_waiting(&person, "Waiting for Player 2 and Player 3 to join");
    world.join(&invites[1], "ben");
    is_waiting(&person, "Waiting for Player 3 to join");
    world.join(&invites[2], "cyd");
    is_to_move(&person);
    // Back and forward lead to the same state. Chromium replaces the entry of a page that is left while it is loading.
    person.wait("document.readyState === 'complete'");
    person.click("h1 a");
    person.wait("location.pathname === '/challenges/dining-cryptographers'");
    person.run("history.back()");
    is_to_move(&person);
    // A foreign or wrong invite has a page that says so.
    person.excuse("status of 404");
    person.open(&world.page("/play/inv_00000000-0000-7000-8000-000000000000"));
    person.see("No game has this invite.");
    person.see("Choose a game");
}
