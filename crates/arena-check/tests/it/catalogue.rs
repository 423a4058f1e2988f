//! Everything that is built in is held to account by the checks that authors of challenges are offered.

use serde_json::Map;

use crate::{report, told};

#[test]
fn everything_that_is_built_in_passes() {
    for id in arena_catalogue::challenges() {
        let challenge = arena_catalogue::challenge(id, &Map::new()).unwrap().unwrap();
        let t = std::time::Instant::now();
        println!("{id}\n{}", told(&report(&*challenge)));
        println!("{:?}", t.elapsed());
    }
}
