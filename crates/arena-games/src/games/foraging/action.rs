//! The agents' actions on a map.

use serde::{Deserialize, Serialize};

use super::id::Id;

/// One action, as described in the module `foraging`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Moves an actor towards a point.
    Move { actor_id: Id, target: [f64; 2] },
    /// An actor takes food from a source.
    TakeFood { actor_id: Id, food_id: Id },
    /// An actor puts its food into a base.
    DepositFood { actor_id: Id, base_id: Id },
    /// A base heals an actor with its food.
    Heal { actor_id: Id, base_id: Id },
    /// A base makes an actor.
    Spawn { base_id: Id },
    /// An actor hurts an actor or a base of another agent.
    Attack { actor_id: Id, target: Id },
    /// An actor becomes a base.
    MakeBase { actor_id: Id },
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(actions: &[&str], expected: Expect) {
        let read = |text: &&str| match serde_json::from_str::<Action>(text) {
            Ok(action) => serde_json::to_string(&action).unwrap() + "\n",
            Err(error) => error.to_string().split(" at line").next().unwrap().to_owned() + "\n",
        };
        expected.assert_eq(&actions.iter().map(read).collect::<String>());
    }

    #[test]
    fn actions_are_parsed_and_unknown_keys_are_dropped() {
        check(
            &[
                r#"{"action":"move","actor_id":"Ab3dE6","target":[1,2.5],"because":"food"}"#,
                r#"{"food_id":"Food01","actor_id":"Ab3dE6","action":"take_food"}"#,
                r#"{"action":"deposit_food","actor_id":"Ab3dE6","base_id":"Base01"}"#,
                r#"{"action":"heal","actor_id":"Ab3dE6","base_id":"Base01"}"#,
                r#"{"action":"spawn","base_id":"Base01"}"#,
                r#"{"action":"attack","actor_id":"Ab3dE6","target":"Enemy1"}"#,
                r#"{"action":"make_base","actor_id":"\u0041b3dE6"}"#,
            ],
            expect![[r#"
                {"action":"move","actor_id":"Ab3dE6","target":[1.0,2.5]}
                {"action":"take_food","actor_id":"Ab3dE6","food_id":"Food01"}
                {"action":"deposit_food","actor_id":"Ab3dE6","base_id":"Base01"}
                {"action":"heal","actor_id":"Ab3dE6","base_id":"Base01"}
                {"action":"spawn","base_id":"Base01"}
                {"action":"attack","actor_id":"Ab3dE6","target":"Enemy1"}
                {"action":"make_base","actor_id":"Ab3dE6"}
            "#]],
        );
    }

    #[test]
    fn wrong_types_are_refused_with_a_reason_for_people() {
        check(
            &[
                r#"{"actor_id":"Ab3dE6"}"#,
                r#"{"action":"fly","actor_id":"Ab3dE6"}"#,
                r#"{"action":7}"#,
                r#"{"action":"move","actor_id":"Ab3dE6"}"#,
                r#"{"action":"move","actor_id":"Ab3dE6","target":null}"#,
                r#"{"action":"move","actor_id":"Ab3dE6","target":"Food01"}"#,
                r#"{"action":"move","actor_id":"Ab3dE6","target":[1]}"#,
                r#"{"action":"move","actor_id":"Ab3dE6","target":[1,2,3]}"#,
                r#"{"action":"move","actor_id":"Ab3dE6","target":[1,"2"]}"#,
                r#"{"action":"move","actor_id":"Ab3dE6","target":[1,null]}"#,
                r#"{"action":"move","actor_id":"Ab3dE6","target":[1,1e999]}"#,
                r#"{"action":"move","actor_id":"Ab3dE6","target":[1,NaN]}"#,
                r#"{"action":"move","actor_id":7,"target":[1,2]}"#,
                r#"{"action":"attack","actor_id":"Ab3dE6","target":[1,2]}"#,
                r#"{"action":"attack","actor_id":"Ab3dE6","target":"Ab3dE67"}"#,
                r#"{"action":"spawn","base_id":"a-b-c-"}"#,
            ],
            expect![[r#"
                missing field `action`
                unknown variant `fly`, expected one of `move`, `take_food`, `deposit_food`, `heal`, `spawn`, `attack`, `make_base`
                invalid type: integer `7`, expected variant identifier
                missing field `target`
                invalid type: null, expected an array of length 2
                invalid type: string "Food01", expected an array of length 2
                invalid length 1, expected an array of length 2
                invalid length 3, expected 2 elements in sequence
                invalid type: string "2", expected f64
                invalid type: null, expected f64
                number out of range
                expected value
                invalid type: integer `7`, expected an id of 6 letters and digits
                invalid type: sequence, expected an id of 6 letters and digits
                invalid value: string "Ab3dE67", expected an id of 6 letters and digits
                invalid value: string "a-b-c-", expected an id of 6 letters and digits
            "#]],
        );
    }
}
