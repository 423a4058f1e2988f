//! Reports of evaluations on a server: only the files of reports in the settings' folder.

use std::fs;
use std::os::unix::fs::symlink;

use arena_testkit::Host;

#[test]
fn a_server_shows_the_reports_of_its_folder() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("run 1/report/index.html", "<h1>autumn</h1>");
    write("run 1/report/style.css", "p {}");
    write("run 1/report/games/3f2a.html", "<h1>game</h1>");
    write("run 1/report/notes.txt", "for nobody");
    write("run 1/report/games/.hidden.html", "for nobody");
    write("run 1/run.toml", "for nobody");
    write("no-report/run.toml", "for nobody");
    write("report/index.html", "for nobody");
    for (place, text) in [("report/index.html", "for nobody"), ("index.html", "for nobody")] {
        let path = outside.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    symlink(outside.path(), folder.path().join("linked")).unwrap();
    fs::create_dir(folder.path().join("half")).unwrap();
    symlink(outside.path().join("report"), folder.path().join("half/report")).unwrap();
    symlink(outside.path().join("index.html"), folder.path().join("run 1/report/costs.html")).unwrap();

    let host = Host::start_with(|settings| settings.evals.folder = Some(folder.path().to_owned()));
    let client = host.client();
    assert!(client.get("/leaderboards").text().contains("href=\"/evals\""));
    let list = client.get("/evals").text().to_owned();
    assert!(list.contains("\"/evals/run%201/index.html\""), "{list}");
    for other in ["no-report", "linked", "half"] {
        assert!(!list.contains(other), "{list}");
    }
    for (file, kind, text) in [
        ("index.html", "text/html; charset=utf-8", "autumn"),
        ("style.css", "text/css; charset=utf-8", "p {}"),
        ("games/3f2a.html", "text/html; charset=utf-8", "game"),
    ] {
        let answer = client.get(&format!("/evals/run%201/{file}"));
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{file}");
        assert!(answer.text().contains(text), "{file}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    }
    let paths = "run%201/notes.txt run%201/games/.hidden.html run%201/run.toml run%201/..%2frun.toml \
        run%201/games/..%2f..%2frun.toml run%201/games run%201/costs.html no-report/index.html \
        linked/index.html half/index.html .%2e/index.html %2e/index.html none/index.html";
    for path in paths.split(' ') {
        let answer = client.get(&format!("/evals/{path}"));
        assert!(answer.status == 404 && !answer.text().contains("for nobody"), "{path}: {}", answer.text());
    }
    // The pages of earlier versions.
    assert_eq!(client.get("/evals/runs/autumn/games/3f2a").status, 410);
}

#[test]
fn a_server_without_a_folder_has_no_reports() {
    let host = Host::start_with(|_| {});
    let client = host.client();
    for path in ["/evals", "/evals/autumn/index.html"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    assert!(!client.get("/leaderboards").text().contains("/evals"));
}
