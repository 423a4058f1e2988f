//! What browsers get: modules that draw games, the viewer of replays, and its style sheet, as texts in the binary.
//!
//! Plain ES modules, as they stand in `assets` and next to the games in `arena-games`, and one list of the latter: nothing builds them,
//! and they load nothing from elsewhere. `boards.js` and what it imports knows games only, so pages of games that are still going on can import it too; `viewer.js` is the viewer of replays. Who serves the
//! files, or writes them to a folder, is the business of others; they keep [`POLICY`].
//!
//! Whatever comes from players reaches a page as text only: through `textContent` and attributes in the modules, escaped in [`page`].

use std::collections::BTreeMap;
use std::sync::LazyLock;

use arena_games::{Module, Playable};
use maud::{DOCTYPE, Markup, html};

/// What pages with these files may load: only what comes from where they come from.
/// (`frame-ancestors` is missing because it counts in a header only; servers add it.)
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     base-uri 'none'; form-action 'none'";

/// A file that browsers load.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Its path below the folder of assets, such as `boards/chess.js`. Modules name each other by relative paths.
    pub path: &'static str,
    /// The value of `Content-Type`.
    pub media_type: &'static str,
    /// What is in it.
    pub text: &'static str,
}

macro_rules! assets {
    ($($path:literal as $media_type:expr),* $(,)?) => {
        &[$(Asset { path: $path, media_type: $media_type, text: include_str!(concat!("../assets/", $path)) }),*]
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// How boards look: the style of what `boards.js` draws, and the colours of seats. It stands before a page's own style.
pub static BOARDS_STYLE: LazyLock<String> = LazyLock::new(|| {
    let own = modules().into_iter().map(|module| module.style);
    [include_str!("../assets/boards.css")].into_iter().chain(own).collect()
});

/// The module that knows which module draws which game.
static GAMES: LazyLock<String> = LazyLock::new(|| {
    let imports =
        modules().into_iter().map(|Module { name, .. }| format!("import * as {name} from \"./{name}.js\";\n"));
    let entry = |game: &Playable| Some(format!("  [\"{}\", {}],\n", game.game.name, game.kit.module?.name));
    let entries: String = arena_games::all().filter_map(entry).collect();
    format!(
        "// The modules that draw games, by the games' names.\n{}\nexport const BOARDS = new Map([\n{entries}]);\n",
        imports.collect::<String>()
    )
});

/// All files.
pub static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let script = |name: &str, text| Asset { path: format!("boards/{name}.js").leak(), media_type: SCRIPT, text };
    let boards = modules().into_iter().map(|module| script(module.name, module.script));
    let made = [script("games", &GAMES), Asset { path: "boards.css", media_type: STYLE, text: &BOARDS_STYLE }];
    FILES.iter().copied().chain(made).chain(boards).collect()
});

/// The modules of all games, each once.
fn modules() -> Vec<Module> {
    let by_name = arena_games::all().filter_map(|playable| playable.kit.module).map(|module| (module.name, module));
    by_name.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// The files of this crate.
const FILES: &[Asset] = assets![
    "arena.css" as STYLE,
    "boards.js" as SCRIPT,
    "boards/messages.js" as SCRIPT,
    "boards/seats.js" as SCRIPT,
    "chart.js" as SCRIPT,
    "controls.js" as SCRIPT,
    "file.js" as SCRIPT,
    "replay.js" as SCRIPT,
    "sentences.js" as SCRIPT,
    "viewer.css" as STYLE,
    "viewer.js" as SCRIPT,
];

/// The class that gives an element the colour of a seat, which counts from 0, as `--seat`. Colours repeat after eight seats.
pub fn seat_class(seat: usize) -> String {
    format!("seat-{}", seat % 8)
}

/// Where the viewer finds what it needs, as addresses that are relative to its page.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The folder of assets, with `/` at its end.
    pub assets: &'a str,
    /// The replay. What serves it should answer requests for ranges.
    pub replay: &'a str,
    /// Its index.
    pub index: &'a str,
    /// The summary, as JSON.
    pub summary: &'a str,
    /// A list of more replays, if there is one.
    pub list: Option<&'a str>,
}

/// The page of a replay.
pub fn replay_page(title: &str, places: &Places<'_>) -> String {
    let main = html! {
        @if let Some(list) = places.list {
            nav { a href=(list) { "All replays" } }
        }
        h1 { (title) }
        noscript { p.problem { "Boards are drawn by scripts, and this browser runs none. " code { "arena replay show" } " needs none." } }
        main { (viewer(places)) }
    };
    page(title, places.assets, Some("viewer.js"), &main)
}

/// The viewer of a replay, for a page that loads `viewer.js` and `viewer.css`; there is one on a page.
pub fn viewer(places: &Places<'_>) -> Markup {
    // Where things are is told to the script by attributes: there is no script in the page itself.
    html! {
        div.viewer id="viewer" data-replay=(places.replay) data-index=(places.index) data-summary=(places.summary) {
            p.soft { "Loading…" }
        }
    }
}

/// A page in the style of the viewer. `assets` is the address of the folder of assets, with `/` at its end.
pub fn page(title: &str, assets: &str, script: Option<&str>, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { (title) }
                link rel="icon" href="data:,";
                link rel="stylesheet" href={ (assets) "boards.css" };
                link rel="stylesheet" href={ (assets) "arena.css" };
                link rel="stylesheet" href={ (assets) "viewer.css" };
                @if let Some(script) = script {
                    script type="module" src={ (assets) (script) } {}
                }
            }
            body { (body) }
        }
    }
    .into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts between `open` and the next `"`.
    fn quoted<'a>(text: &'a str, open: &str) -> Vec<&'a str> {
        text.split(open).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    fn modules_import_only_what_is_there() {
        let mut imports = 0;
        for asset in &*ASSETS {
            let folder = asset.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            for import in quoted(asset.text, "from \"") {
                let path = match (import.strip_prefix("./"), import.strip_prefix("../")) {
                    (Some(beside), _) if folder.is_empty() => beside.to_owned(),
                    (Some(beside), _) => format!("{folder}/{beside}"),
                    (_, Some(above)) => above.to_owned(),
                    _ => panic!("{} imports {import}", asset.path),
                };
                assert!(ASSETS.iter().any(|other| other.path == path), "{} imports {path}", asset.path);
                imports += 1;
            }
        }
        assert!(imports > 5, "{imports}");
    }

    /// Names of players are hostile: what they say must stay text.
    #[test]
    fn nothing_makes_markup_of_texts() {
        let ways =
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser"];
        for asset in &*ASSETS {
            let found = ways.iter().find(|way| asset.text.contains(**way));
            assert_eq!(found, None, "{}", asset.path);
            assert!(
                !asset.text.contains("http://") || asset.text.contains("http://www.w3.org/2000/svg"),
                "{}",
                asset.path
            );
            assert!(!asset.text.contains("https://"), "{}", asset.path);
        }
    }

    #[test]
    fn a_title_is_text_whatever_it_holds() {
        let places =
            Places { assets: "assets/", replay: "a\"b", index: "replay.index", summary: "replay.json", list: None };
        let page = replay_page("</title><script>alert(1)</script>", &places);
        assert!(!page.contains("<script>"), "{page}");
        assert!(page.contains("data-replay=\"a&quot;b\""), "{page}");
        // No script and no style but from files.
        assert_eq!((page.matches("<script").count(), page.matches("style=").count()), (1, 0), "{page}");
    }
}
