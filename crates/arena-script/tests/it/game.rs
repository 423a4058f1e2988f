//! A scripted session in the match runner, and the dealt numbers.

use std::sync::Arc;

use arena_model::{ChallengeType, Events, GameType, Script, Seed, Setup};
use expect_test::expect;
use serde_json::{Map, json};

use crate::table::{Game, METADATA, example, load, sandbox, script};

#[test]
fn a_script_is_a_game_for_bots() {
    let game_type = GameType::of_challenge(Arc::new(example("coin")));
    let agents = ["a", "b"].map(|id| id.parse().unwrap()).to_vec();
    let mut game = game_type.start(&Map::new(), Setup { seed: Seed::from_number(3), agents }).unwrap();
    let (mut taken, mut events) = (Vec::new(), Events::default());
    let show = |coin: &str| json!([{"action": "show", "content": coin}]).to_string();
    game.play(&[Some(&show("heads")), Some(&show("tails"))], &mut taken, &mut events);
    expect![[
        r#"[[{"action":"show","content":"heads"}],[{"action":"show","content":"tails"}]] Some("GAME_ENDED") [0.0, 2.0]"#
    ]]
    .assert_eq(&format!("{} {:?} {:?}", String::from_utf8(taken).unwrap(), game.termination(), game.scores()));
}

#[test]
fn equal_seeds_deal_equally_and_others_do_not() {
    let state = |seed| Game::new(example("sealed-words"), seed).start().act(1, "pass", "").state().to_string();
    assert_eq!(state(1), state(1));
    assert_ne!(Game::new(example("psi"), 1).state(), Game::new(example("psi"), 2).state());
    let told = |seed| Game::new(example("psi"), seed).start().told;
    assert_eq!(told(5), told(5));
}

#[test]
fn each_context_has_a_seed_of_its_own_which_is_the_same_in_each_call() {
    let lines = r#"onGameStart() { this.broadcast(seeds()); }
    act() { this.broadcast(seeds()); }"#;
    let declared = r#"import { derivePrivateSeed } from "@specarena/engine/utils";
        const contexts = ["a", "b", "", "é\u{1F600}", "\ud83d", undefined, "undefined", 7, {}];
        const seeds = () => contexts.map(derivePrivateSeed).join();"#;
    let text = format!("{declared}\n{}", script(lines));
    let files = [("challenge.json", METADATA), ("index.js", text.as_str())].into_iter().collect();
    let challenge = load(&files, arena_script::Limits::default()).unwrap();
    let told = |seed: u64| {
        let game = Game::new(challenge.clone(), seed).start().act(1, "act", "");
        let lines: Vec<String> =
            game.told.lines().filter_map(|line| line.strip_prefix("operator → all: ")).map(str::to_owned).collect();
        assert!(lines.len() == 2 && lines[0] == lines[1], "{lines:?}");
        lines[0].split(',').map(str::to_owned).collect::<Vec<_>>()
    };
    let seeds = told(3);
    // With the session's seed, any HMAC implementation can derive them.
    let secret = Seed::from_number(3).derive("script/private");
    let expected = ["a", "b", "", "é\u{1F600}", "\u{fffd}", "undefined", "undefined", "7", "[object Object]"];
    let expected = expected.map(|context| secret.derive(&format!("arena:v1:rng:{context}")).reveal());
    assert_eq!(seeds, expected);
    assert!(told(4).iter().all(|seed| !seeds.contains(seed)), "another session has other seeds");
}

#[test]
fn a_session_that_began_with_one_seed_for_all_contexts_keeps_it() {
    let declared = "import { derivePrivateSeed } from \"@specarena/engine/utils\";";
    let text =
        format!("{declared}\n{}", script("act() { this.broadcast([\"a\", \"b\"].map(derivePrivateSeed).join()); }"));
    let files = [("challenge.json", METADATA), ("index.js", text.as_str())].into_iter().collect();
    let today = load(&files, arena_script::Limits::default()).unwrap();
    assert_eq!(today.rules_version(), 3);
    let mut kept: serde_json::Value = serde_json::from_str(today.script().unwrap().source()).unwrap();
    kept.as_object_mut().unwrap().remove("api").unwrap();
    let revive = |kept: &serde_json::Value| {
        arena_script::ScriptChallenge::revive(
            "challenge",
            Script::new(kept.to_string()),
            &sandbox(arena_script::Limits::default()),
        )
    };
    let old = revive(&kept).unwrap();
    assert_eq!(old.rules_version(), 1);
    let seed = Seed::from_number(3).derive("script/private").reveal();
    let told = Game::new(old, 3).start().act(2, "act", "").told;
    assert!(told.ends_with(&format!("operator → all: {seed},{seed}\n")), "{told}");
    kept["api"] = json!(4);
    expect!["challenge: is a script for version 4 of the API; this program has 3"]
        .assert_eq(&revive(&kept).err().unwrap()[0].to_string());
}

#[test]
fn a_join_passes_the_user_id_and_in_older_sessions_the_invite() {
    let text = script(
        "async join(invite, userId) { await super.join(invite, userId); this.send(`You are ${userId}.`, invite); }\nact() {}",
    );
    let files = [("challenge.json", METADATA), ("index.js", text.as_str())].into_iter().collect();
    let today = load(&files, arena_script::Limits::default()).unwrap();
    let mut kept: serde_json::Value = serde_json::from_str(today.script().unwrap().source()).unwrap();
    kept["api"] = json!(2);
    let older = arena_script::ScriptChallenge::revive(
        "challenge",
        Script::new(kept.to_string()),
        &sandbox(arena_script::Limits::default()),
    )
    .unwrap();
    let version = |challenge: &dyn ChallengeType| challenge.script().unwrap().version();
    assert_eq!(version(&*today.with_rules(2).unwrap()), version(&older), "records name the older version");
    assert_eq!(version(&*today.with_rules(3).unwrap()), version(&today));
    assert!(today.with_rules(4).is_none());
    let told = |challenge| Game::new(challenge, 1).join_as(1, Some("ada")).join_as(2, None).told;
    expect![[r#"
        operator → 1: You are ada.
        operator → 2: You are inv_2.
    "#]]
    .assert_eq(&told(today));
    expect![[r#"
        operator → 1: You are inv_1.
        operator → 2: You are inv_2.
    "#]]
    .assert_eq(&told(older));
}

#[test]
fn options_are_whoever_creates_the_sessions_to_choose_as_far_as_allowed() {
    let with = |wishes| Game::with(example("psi"), 1, &wishes);
    let game = with(json!({"range": [10, 99], "setSize": 2})).unwrap();
    assert_eq!(game.state()["userSets"][0].as_array().unwrap().len(), 5);
    let told = |wishes: serde_json::Value| example("psi").resolve(wishes.as_object().unwrap()).unwrap_err().to_string();
    assert_eq!(told(json!({"setSize": 2.5})), "option setSize of psi must be a whole number");
    assert_eq!(
        told(json!({"intersectionSize": 51})),
        "option intersectionSize of psi must be a whole number from 1 to 50"
    );
    assert_eq!(
        told(json!({"deck": 1})),
        "option deck cannot be set for a session of psi; allowed: range, intersectionSize, setSize"
    );
    let fixed = json!({"range": [1, 99], "setSize": 4});
    let psi = example("psi").with_options(fixed.as_object().unwrap()).unwrap();
    assert_eq!(json!(psi.options())[0]["default"], json!([1, 99]));
    // The arena's own options reach the script unchanged.
    let opaque = json!({"deck": {"cards": [1, "x"]}, "players": 2});
    let told = psi.find_stray(opaque.as_object().unwrap()).unwrap();
    assert_eq!(told, "unknown option `deck`; known options: intersectionSize, range, setSize");
    let psi = psi.with_options(opaque.as_object().unwrap()).unwrap();
    psi.test_start().unwrap();
    assert_eq!(psi.resolve(&Map::new()).unwrap()["deck"]["cards"], json!([1, "x"]));
    assert!(psi.with_options(json!({"intersectionSize": 51}).as_object().unwrap()).is_err());
    let refused = with(json!({"range": [10, 12]})).err().unwrap();
    assert_eq!(
        (refused.code.as_str(), refused.message.as_str()),
        ("INVALID_OPTIONS", "The range has too few numbers.")
    );
}

#[test]
fn time_and_chance_are_those_of_the_call_from_the_first_line_on() {
    let told = |seed, declared: &str| {
        let text = format!("{declared}\n{}", script("act() { this.broadcast(told()); }"));
        let files = [("challenge.json", METADATA), ("index.js", text.as_str())].into_iter().collect();
        let game = Game::new(load(&files, arena_script::Limits::default()).unwrap(), seed).start();
        game.act(1, "act", "")
            .act(2, "act", "")
            .told
            .lines()
            .filter(|line| line.starts_with("operator"))
            .fold(String::new(), |told, line| format!("{told}{line}\n"))
    };
    let early = "const drawn = Math.random();\nconsole.log(drawn);\nconst told = () => `${drawn}`;";
    assert_eq!(told(1, early), told(1, early));
    assert_ne!(told(1, early), told(2, early));
    expect![[r#"
        operator → all: 1700000003000
        operator → all: 1700000004000
    "#]]
    .assert_eq(&told(1, "const at = Date.now();\nconst told = () => `${at}`;"));
    // A script that continues after errors finds the call's values, too; a script that only stores the functions finds
    // those of each call.
    let guarded = "let drawn = \"none\";\ntry { drawn = typeof Math.random(); } catch {}\nconst told = () => drawn;";
    expect![[r#"
        operator → all: number
        operator → all: number
    "#]]
    .assert_eq(&told(1, guarded));
    let held =
        "const { now } = Date;\nconst random = Math.random;\nconst told = () => `${now()} ${random() === random()}`;";
    expect![[r#"
        operator → all: 1700000003000 false
        operator → all: 1700000004000 false
    "#]]
    .assert_eq(&told(1, held));
    let said = told(1, "const random = Math.random;\nconst told = () => `${random()}`;");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.len() == 2 && lines[0] != lines[1], "one call's chance isn't another's: {said}");
    // The plain world lacks only names that the script doesn't use.
    expect![[r#"
        operator → all: undefined undefined
        operator → all: undefined undefined
    "#]]
    .assert_eq(&told(1, "const told = () => `${typeof WeakRef} ${typeof performance}`;"));
    expect![[r#"
        operator → all: function 3 object
        operator → all: function 3 object
    "#]]
    .assert_eq(&told(1, "const told = () => `${typeof Date} ${new Uint8Array(3).length} ${typeof Atomics}`;"));
    expect![[r#"
        operator → all: function,function,object
        operator → all: function,function,object
    "#]]
    .assert_eq(&told(
        1,
        "const told = () => [\"Date\", \"Float16Array\", \"Atomics\"].map((name) => typeof globalThis[name]).join();",
    ));
}

/// The numbers are those of the package of this name, version 6.0.1.
#[test]
fn prando_gives_the_numbers_of_the_published_package() {
    let lines = r#"onGameStart() {
        for (const seed of ["hello", 42, 0, "", -5, "deadbeef00", 1.5]) {
            const random = new Prando(seed);
            const drawn = [1, 2, 3, 4].map(() => random.nextInt(100, 900));
            drawn.push(random.next(), random.next(0, 10), random.nextBoolean(), random.nextString(5), random.nextChar("abc"));
            drawn.push(random.nextArrayItem([1, 2, 3]));
            random.skip(3);
            drawn.push(random.next());
            random.reset();
            drawn.push(random.nextInt(1, 6));
            this.broadcast(`${JSON.stringify(seed)} ${JSON.stringify(drawn)}`);
        }
    }
    act() {}"#;
    let text = format!("import Prando from \"prando\";\n{}", script(lines));
    let files = [("challenge.json", METADATA), ("index.js", text.as_str())].into_iter().collect();
    let game = Game::new(load(&files, arena_script::Limits::default()).unwrap(), 1).start();
    expect![[r#"
        operator → all: "hello" [551,852,130,445,0.47878613450536184,9.628514004784757,false,"ngtLY","b",3,0.3001285261242018,4]
        operator → all: 42 [502,228,442,431,0.4773453097970563,3.7719481121217715,true,"fSlgQ","c",1,0.45627938500984555,4]
        operator → all: 0 [500,513,839,352,0.1551597700815554,9.486529105223372,false,"Xel8j","c",2,0.4648158653790168,4]
        operator → all: "" [500,513,839,352,0.1551597700815554,9.486529105223372,false,"Xel8j","c",2,0.4648158653790168,4]
        operator → all: -5 [500,438,624,672,0.23936835798420206,5.347565665223534,false,"HIplT","c",3,0.5202479489427637,4]
        operator → all: "deadbeef00" [626,470,146,146,0.15879908184492939,8.923580450686527,false,"CfzE0","b",1,0.6894692377395624,4]
        operator → all: 1.5 [500,513,839,352,0.1551597700815554,9.486529105223372,false,"Xel8j","c",2,0.4648158653790168,4]
    "#]]
    .assert_eq(&game.told);
}
