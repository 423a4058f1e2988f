//! The deal of the day: the same seed for all, fixed in the log before the day, with one try for each browser.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use arena_server::{House, HouseSeat, HouseSettings};
use arena_testkit::{Answer, Client, Host, TestEnvironment, WithSecret, eventually};
use serde_json::json;
use sha2::{Digest, Sha256};

/// The days of the test's clock, which starts at 22:13.
const TODAY: &str = "2023-11-14";
const TOMORROW: &str = "2023-11-15";

const TWO_HOURS_MS: i64 = 7_200_000;

struct Arena {
    host: Host,
    environment: TestEnvironment,
    seats: Receiver<HouseSeat>,
}

impl Arena {
    fn start() -> Arena {
        let environment = TestEnvironment::new(11);
        let (house, seats) = House::open(["psi".to_owned()], &HouseSettings::default());
        let psi = Arc::new(WithSecret::new("psi", |_| {}));
        let host = Host::start_with_house(environment.for_engine(), vec![psi], house);
        let arena = Arena { host, environment, seats };
        arena.await_deal();
        arena
    }

    /// Waits until the log has the deal of the day.
    fn await_deal(&self) {
        let client = self.host.client();
        eventually("the deal of the day", || client.get("/daily").text().contains("action=\"/daily\"").then_some(()));
    }
}

fn press(client: &Client, cookie: &str) -> Answer {
    let headers = [("content-type", "application/x-www-form-urlencoded"), ("cookie", cookie)];
    client.request("POST", "/daily", &headers, b"")
}

fn daily(client: &Client, path: &str, cookie: &str) -> String {
    let answer = client.request("GET", path, &[("cookie", cookie)], b"");
    assert_eq!(answer.status, 200, "{path}");
    answer.text().to_owned()
}

/// A visitor's game.
struct Try {
    cookie: String,
    invite: String,
    bot: String,
    session: String,
}

impl Try {
    /// Starts a game, in which the house bot sits as well.
    fn begin(arena: &Arena) -> Try {
        let client = arena.host.client();
        let answer = press(&client, "");
        assert_eq!(answer.status, 303, "{}", answer.text());
        let invite =
            answer.header("location").and_then(|place| place.strip_prefix("/play/")).expect("a seat").to_owned();
        let cookie = answer.header("set-cookie").expect("a cookie");
        assert_eq!(
            cookie.split_once("; "),
            Some((&*format!("daily={TODAY}.{invite}"), "Path=/daily; Max-Age=172800; HttpOnly; SameSite=Lax"))
        );
        let cookie = cookie.split(';').next().expect("a value").to_owned();
        let seat = arena.seats.recv().expect("a seat for a bot");
        let bot = seat.invite.clone();
        client.post("/api/arena/join", &json!({ "invite": bot, "userId": seat.user() })).ok();
        let seat = client.get(&format!("/play/{invite}"));
        let session =
            seat.text().split("data-session=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("an id");
        Try { cookie, bot, session: session.to_owned(), invite }
    }

    /// Both players guess a wrong number. Returns the seed of the ended game.
    fn end(&self, arena: &Arena) -> String {
        let client = arena.host.client();
        for player in [&self.invite, &self.bot] {
            client.act(&self.session, player, "guess", "101").ok();
        }
        let record = client.get(&format!("/api/sessions/{}/record", self.session));
        let seed = record.text().split("\"seed\":\"").nth(1).and_then(|rest| rest.split('"').next());
        seed.expect("a seed").to_owned()
    }
}

#[test]
fn all_play_the_same_deal_once_and_compare_their_results() {
    let arena = Arena::start();
    let client = arena.host.client();
    assert!(client.get("/").text().contains("href=\"/daily\""));
    let lists = || [client.get("/challenges/psi").text().to_owned(), client.get("/api/stats").text().to_owned()];
    let before = lists();
    let (first, second) = (Try::begin(&arena), Try::begin(&arena));
    // A second press leads back to the page, which has the way to the game.
    let again = press(&client, &first.cookie);
    assert_eq!((again.status, again.header("location")), (303, Some("/daily")));
    assert!(arena.seats.try_recv().is_err(), "a second game has begun");
    let page = daily(&client, "/daily", &first.cookie);
    assert!(page.contains(&format!("href=\"/play/{}\"", first.invite)) && page.contains("Go on with your game"));
    assert!(page.contains("Nobody has finished this deal yet."));
    let seed = first.end(&arena);
    assert_eq!(second.end(&arena), seed);
    let page = daily(&client, "/daily", &first.cookie);
    let hash: String = Sha256::digest(hex(&seed)).iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(page.contains(&hash) && !page.contains(&seed), "{page}");
    let row = "<td>goal missed, secret kept <span class=\"badge\">you</span></td><td class=\"number\">2</td>";
    assert!(page.contains(row), "{page}");
    let text = format!("Arena {TODAY}, Private Set Intersection: 🟥🔒 goal missed, secret kept\nhttp://arena/daily");
    assert!(page.contains(&text), "{page}");
    assert!(!daily(&client, "/daily", "").contains("you</span>"));
    // The seat's page has no button that plays the deal again, and none that shares it.
    let seat = client.get(&format!("/play/{}", first.invite));
    assert!(seat.text().contains("How others did"));
    assert!(!seat.text().contains("Play this deal") && !seat.text().contains("data-share"));
    let form = format!("deal={}&against=house", first.session);
    let kind = [("content-type", "application/x-www-form-urlencoded")];
    let refused = client.request("POST", "/challenges/psi", &kind, form.as_bytes());
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("the deal of a day can be played once"), "{}", refused.text());
    // Nothing else shows or counts the games.
    assert_eq!(lists(), before);
}

#[test]
fn the_seed_is_fixed_before_the_day_and_shown_after_it() {
    let arena = Arena::start();
    let client = arena.host.client();
    // The log has tomorrow's deal today. Its page comes with the day.
    let leaves = String::from_utf8_lossy(&client.get("/log/tile/entries/000.p/3").body).into_owned();
    let leaf = leaves.split("{\"leaf\":\"deal\"").find(|leaf| leaf.contains(TOMORROW)).expect("a leaf").to_owned();
    let hash = leaf.split("seedCommitment\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a hash");
    assert_eq!(client.get(&format!("/daily/{TOMORROW}")).status, 404);
    assert_eq!(client.get("/daily/yesterday").status, 404);
    let (counted, late) = (Try::begin(&arena), Try::begin(&arena));
    counted.end(&arena);
    arena.environment.advance_ms(TWO_HOURS_MS);
    // This game ends when the seed is public.
    late.end(&arena);
    arena.await_deal();
    let page = daily(&client, "/daily", &counted.cookie);
    assert!(page.contains(hash) && page.contains("action=\"/daily\""), "the try of another day counts");
    assert!(page.contains(&format!("href=\"/daily/{TODAY}\"")));
    let page = daily(&client, &format!("/daily/{TODAY}"), &counted.cookie);
    let seed = page.split("printf ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a seed");
    let hash: String = Sha256::digest(hex(seed)).iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(page.contains(&format!("<dd><code>{hash}</code></dd>")), "{page}");
    assert!(page.contains("you</span></td><td class=\"number\">1</td>"), "{page}");
    assert!(!page.contains("action=\"/daily\""));
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal digits"))
        .collect()
}

#[test]
fn servers_without_house_bots_have_no_deal() {
    let host = Host::start();
    let client = host.client();
    assert!(!client.get("/").text().contains("/daily"));
    let page = client.get("/daily");
    assert!(page.status == 200 && page.text().contains("This server has no deal of the day."));
    assert_eq!(press(&client, "").status, 404);
}
