//! Agents that use the protocol of the older kit, and must be able to play each game to its end. They answer each
//! message, read flat states, and write `move` beside `agent_id`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::program::run;

const KIT: &str = include_str!("../hostile/old_sdk.py");

#[test]
fn agents_of_the_older_kit_play_every_game_without_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let replay = folder.path().join("game.jsonl").display().to_string();
    for (game, option) in
        [("snake", "n_epochs=200"), ("chess", ""), ("food_catcher", "n_epochs=300"), ("cherry_picker", "n_epochs=300")]
    {
        let agent = folder.path().join(format!("{game}.py"));
        fs::write(&agent, KIT).unwrap();
        fs::set_permissions(&agent, Permissions::from_mode(0o755)).unwrap();
        let agent = agent.to_str().unwrap();
        for dialect in ["both", "flat"] {
            let args = ["match", "run", game, "--agent", agent, "--agent", agent, "--seed", "9", "--step-ms", "60000"];
            let more = ["--json", "--dialect", dialect, "--replay", &replay];
            let set = ["--set", option];
            let set = if option.is_empty() { &[][..] } else { &set };
            let result = run(&[&args[..], &more, set].concat()).json();
            let case = format!("{game}, {dialect}: {result:#}");
            for seat in result["scores"].as_array().unwrap() {
                assert_eq!((&seat["tainted"], &seat["faults"]), (&Value::from(false), &Value::from(0)), "{case}");
                assert_eq!(seat["version"], "1.0.0", "{case}");
            }
            let best = result["scores"][0]["score"].as_f64().unwrap();
            // An inactive agent scores at most 0. A draw of chess is 0.5.
            assert!(best >= if game == "chess" { 0.5 } else { 1.0 }, "{case}");
            let lines = fs::read_to_string(&replay).unwrap();
            let moves = lines.matches("\"action\":\"move\"").count();
            assert!(moves > if game == "chess" { 20 } else { 5 }, "{case}: {moves} moves");
            // In the games with sources, an action is rejected if another agent has used up the source.
            let rejected = lines.matches("\"rejected\":").count();
            assert!(rejected * 10 < moves && (rejected == 0 || game.contains("_")), "{case}: {rejected} rejections");
            assert_eq!(run(&["replay", "verify", &replay]).code, 0, "{case}");
        }
    }
}
