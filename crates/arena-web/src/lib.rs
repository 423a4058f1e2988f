//! Files for browsers, embedded in the binary: modules that draw games, the replay viewer, and their style sheets.
//!
//! The modules are plain ES modules without a build step, and load nothing from other hosts. They come from `assets`
//! and from the games' folders in `arena-games`. Live pages and replays share `boards.js` and its imports; `viewer.js`
//! is the replay viewer. Other crates serve the files or write them to a folder, under [`POLICY`].
//!
//! Pages show players' data as text, never as markup. The modules use `textContent` and attributes; [`page`] escapes
//! texts.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use arena_games::{Module, Playable, SeatControls};
use maud::{DOCTYPE, Markup, html};

/// The content security policy of pages with these files: resources of the same origin only.
/// (Browsers accept `frame-ancestors` only in the header, where servers add it.)
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     base-uri 'none'; form-action 'none'";

#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// The path below the folder of assets, such as `boards/chess.js`. Modules import each other by relative paths.
    pub path: &'static str,
    pub media_type: &'static str,
    pub text: &'static str,
}

macro_rules! assets {
    ($($path:literal as $media_type:expr),* $(,)?) => {
        &[$(Asset { path: $path, media_type: $media_type, text: include_str!(concat!("../assets/", $path)) }),*]
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// The colors of the seats: the classes of [`seat_class`].
pub const SEATS_STYLE: &str = include_str!("../assets/seats.css");

/// The style sheet of the boards, with the colors of the seats. Pages include this style sheet before their own.
pub static BOARDS_STYLE: LazyLock<String> = LazyLock::new(|| {
    let own = modules().into_iter().map(|module| module.style);
    [SEATS_STYLE, include_str!("../assets/boards.css")].into_iter().chain(own).collect()
});

/// The generated module `boards/games.js`: a map from games to their board modules.
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

/// All files for browsers, including the generated ones.
pub static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let script = |name: &str, text| Asset { path: format!("boards/{name}.js").leak(), media_type: SCRIPT, text };
    let boards = modules().into_iter().map(|module| script(module.name, module.script));
    let made = [script("games", &GAMES), Asset { path: "boards.css", media_type: STYLE, text: &BOARDS_STYLE }];
    FILES.iter().copied().chain(made).chain(boards).collect()
});

/// Returns the modules of all games, without duplicates.
fn modules() -> Vec<Module> {
    let by_name = arena_games::all().filter_map(|playable| playable.kit.module).map(|module| (module.name, module));
    by_name.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// The generated module `seat/controls.js`: a map from challenges to functions that load their controls. A page loads
/// the controls of one challenge only.
static CONTROLS: LazyLock<String> = LazyLock::new(|| {
    let entry = |playable: &Playable| {
        Some(format!("  [\"{}\", () => import(\"./{}.js\")],\n", playable.id, playable.kit.controls?.name))
    };
    let entries: String = arena_games::all().filter_map(entry).collect();
    format!("// The controls of a seat, by challenge.\nexport const CONTROLS = new Map([\n{entries}]);\n")
});

/// The files of the page of a seat, besides [`ASSETS`]: the controls of all challenges. Replays don't need them.
pub static SEAT_ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let script = |name: &str, text| Asset { path: format!("seat/{name}.js").leak(), media_type: SCRIPT, text };
    let by_name = arena_games::all().filter_map(|playable| playable.kit.controls).map(|module| (module.name, module));
    let modules: BTreeMap<&str, SeatControls> = by_name.collect();
    let parts = [script("controls", &CONTROLS), script("parts", include_str!("../assets/seat/parts.js"))];
    parts.into_iter().chain(modules.into_values().map(|module| script(module.name, module.script))).collect()
});

/// The files in `assets`, except `boards.css`, which is combined with the styles of games.
const FILES: &[Asset] = assets![
    "arena.css" as STYLE,
    "boards.js" as SCRIPT,
    "boards/messages.js" as SCRIPT,
    "boards/pictures.js" as SCRIPT,
    "boards/seats.js" as SCRIPT,
    "chart.js" as SCRIPT,
    "controls.js" as SCRIPT,
    "file.js" as SCRIPT,
    "replay.js" as SCRIPT,
    "sentences.js" as SCRIPT,
    "viewer.css" as STYLE,
    "viewer.js" as SCRIPT,
];

/// The class in the color of a seat, from 0, defines the CSS variable `--seat`. Colors repeat after eight seats.
pub fn seat_class(seat: usize) -> String {
    format!("seat-{}", seat % 8)
}

/// Renders the letter of a seat in its color.
pub fn seat_mark(seat: usize) -> Markup {
    let letter = char::from(b'A' + u8::try_from(seat % 26).unwrap_or(0));
    html! { i class={ "mark " (seat_class(seat)) } { (letter) } }
}

/// The addresses of the viewer's files, relative to its page.
#[derive(Debug, Clone, Copy)]
pub struct ViewerUrls<'a> {
    /// The folder of assets, with a trailing `/`.
    pub assets: &'a str,
    /// The replay. Its server should support range requests.
    pub replay: &'a str,
    pub index: &'a str,
    /// The summary, as JSON.
    pub summary: &'a str,
    /// The page that lists all replays, if there is one.
    pub list: Option<&'a str>,
}

/// Returns a stand-alone page with the viewer.
pub fn replay_page(title: &str, urls: &ViewerUrls<'_>) -> String {
    let main = html! {
        @if let Some(list) = urls.list {
            nav { a href=(list) { "All replays" } }
        }
        h1 { (title) }
        noscript { p.problem { "The replay viewer needs JavaScript. " code { "arena replay show" } " prints the replay in a terminal." } }
        main { (viewer(urls)) }
    };
    page(title, urls.assets, Some("viewer.js"), &main)
}

/// Returns the viewer's HTML element. A page has at most one viewer, and must load `viewer.js` and `viewer.css`.
pub fn viewer(urls: &ViewerUrls<'_>) -> Markup {
    // The element's attributes pass the addresses to the script, since the policy forbids inline scripts.
    html! {
        div.viewer id="viewer" data-replay=(urls.replay) data-index=(urls.index) data-summary=(urls.summary) {
            p.soft { "Loading…" }
        }
    }
}

/// Returns a page in the viewer's style. `assets` is the address of the folder of assets, with a trailing `/`.
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

    /// Returns the texts between `open` and the next `"`.
    fn quoted<'a>(text: &'a str, open: &str) -> Vec<&'a str> {
        text.split(open).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    fn modules_import_existing_files_only() {
        let mut imports = 0;
        let all: Vec<&Asset> = ASSETS.iter().chain(&*SEAT_ASSETS).collect();
        for asset in &all {
            let folder = asset.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            for import in [quoted(asset.text, "from \""), quoted(asset.text, "import(\"")].concat() {
                let path = match (import.strip_prefix("./"), import.strip_prefix("../")) {
                    (Some(beside), _) if folder.is_empty() => beside.to_owned(),
                    (Some(beside), _) => format!("{folder}/{beside}"),
                    (_, Some(above)) => above.to_owned(),
                    _ => panic!("{} imports {import}", asset.path),
                };
                assert!(all.iter().any(|other| other.path == path), "{} imports {path}", asset.path);
                imports += 1;
            }
        }
        assert!(imports > 5, "{imports}");
    }

    /// Players' names may contain markup, which must appear as text.
    #[test]
    fn nothing_makes_markup_of_texts() {
        let ways =
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser"];
        for asset in ASSETS.iter().chain(&*SEAT_ASSETS) {
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
        let urls =
            ViewerUrls { assets: "assets/", replay: "a\"b", index: "replay.index", summary: "replay.json", list: None };
        let page = replay_page("</title><script>alert(1)</script>", &urls);
        assert!(!page.contains("<script>"), "{page}");
        assert!(page.contains("data-replay=\"a&quot;b\""), "{page}");
        // The page loads scripts and styles from files only.
        assert_eq!((page.matches("<script").count(), page.matches("style=").count()), (1, 0), "{page}");
    }
}
