//! The agent guide matches the server and never contains an invalid `Host` of a request.

use arena_testkit::{Client, Host};
use serde_json::{Value, json};

fn get(client: &Client, path: &str, host: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
    let answer = client.raw(request.as_bytes()).expect("an answer");
    assert_eq!(answer.status, 200);
    answer.text().to_owned()
}

#[test]
fn the_skill_contains_this_servers_address_and_challenges() {
    let host = Host::start();
    let client = host.client();
    let answer = client.get("/skill.md");
    assert_eq!(answer.header("content-type"), Some("text/markdown; charset=utf-8"));
    assert!(answer.text().starts_with("---\nname: arena\ndescription: \""), "{}", answer.text());
    for part in ["http://arena/api/arena/mcp", "- `psi`: Private Set Intersection, for 2 players.", "  - `guess`: "] {
        assert!(answer.text().contains(part), "no {part:?} in {}", answer.text());
    }
    let through_proxy = "Host: games.example:8443\r\nX-Forwarded-Proto: https\r\n";
    assert!(get(&client, "/skill.md", through_proxy).contains("\"https://games.example:8443/api/chat/mcp\""));
    // A missing or invalid `Host` doesn't get into the text.
    let own = format!("http://{}", host.address());
    for path in ["/skill.md", "/skill.json"] {
        let output = get(&client, path, "Host: \r\n");
        assert!(output.contains(&own) && !output.contains("example"), "{output}");
        for odd in ["a.example/`curl b.example`", "[a](https://b.example)"] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: {odd}\r\nConnection: close\r\n\r\n");
            let refused = client.raw(request.as_bytes()).expect("an answer");
            assert_eq!((refused.status, refused.text().contains("example")), (400, false), "{odd}");
        }
    }
}

#[test]
fn links_of_the_skill_exist() {
    let host = Host::start();
    let client = host.client();
    let skill = client.get("/skill.json").ok();
    let challenges = skill["challenges"].as_array().expect("a list");
    let psi = challenges.iter().find(|challenge| challenge["id"] == "psi").expect("psi is hosted");
    assert_eq!(psi["methods"][0]["name"], "guess");
    let path = |url: &Value| {
        let url = url.as_str().expect("a text").strip_prefix("http://arena").expect("an address of this server");
        url.replace("{name}", "psi").replace("{channel}", "invites")
    };
    let endpoints = skill["endpoints"].as_object().expect("an object");
    for endpoint in endpoints.values() {
        let (method, path) = (endpoint["method"].as_str().expect("a text"), path(&endpoint["url"]));
        // The response to HEAD ends even for a stream.
        let method = if method == "GET" { "HEAD" } else { method };
        let answer = client.request(method, &path, &[], b"");
        assert!([200, 400].contains(&answer.status), "{method} {path}: {}", answer.status);
    }
    for address in [&skill["homepage"], &skill["skill"]] {
        assert_eq!(client.get(&path(address)).status, 200);
    }
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    for server in skill["mcpServers"].as_object().expect("an object").values() {
        assert_eq!(client.post(&path(&server["url"]), &ping).ok()["result"], json!({}));
    }
    // The home page links to the guide.
    assert!(client.get("/").text().contains("href=\"/skill.md\""));
}
