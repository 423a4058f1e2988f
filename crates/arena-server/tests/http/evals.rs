//! Pages of evaluations on a server: they exist only with a folder in the settings, and link to each other below
//! `/evals`.

use arena_eval::{EvalFolder, EvalPlan, RunFile};
use arena_testkit::Host;

const FILE: &str = r#"
    name = "autumn"
    seeds = 1
    [[models]]
    name = "small"
    model = "careful"
    endpoint = "ollama"
    [[challenges]]
    name = "psi"
"#;

#[test]
fn a_server_shows_the_runs_of_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let plan = EvalPlan::of(RunFile::parse(FILE, "autumn.toml").unwrap(), folder.path()).unwrap();
    drop(EvalFolder::create_or_open(&folder.path().join("run 1"), plan, false).unwrap());
    std::fs::create_dir(folder.path().join("not-a-run")).unwrap();
    let host = Host::start_with(|settings| settings.evals.folder = Some(folder.path().to_owned()));
    let client = host.client();
    let leaderboards = client.get("/leaderboards").text().to_owned();
    assert!(leaderboards.contains("href=\"/evals\""), "{leaderboards}");
    let list = client.get("/evals").text().to_owned();
    assert!(list.contains("/evals/runs/run%201\"") && !list.contains("not-a-run"), "{list}");
    // The server's navigation is on these pages too.
    assert!(list.contains("href=\"/leaderboards\""), "{list}");
    let run = client.get("/evals/runs/run%201").text().to_owned();
    assert!(run.contains("autumn") && run.contains("/evals/runs/run%201/report.csv"), "{run}");
    for path in ["/evals/runs/none", "/evals/runs/not-a-run", "/evals/runs/..%2fnot-a-run", "/evals/none"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
}

#[test]
fn a_server_without_a_folder_has_no_such_pages() {
    let host = Host::start_with(|_| {});
    let client = host.client();
    assert_eq!(client.get("/evals").status, 404);
    assert!(!client.get("/leaderboards").text().contains("/evals"));
}
