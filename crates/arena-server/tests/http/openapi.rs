//! The OpenAPI description is complete and matches the server. `fuzz.rs` checks that responses match it.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Instant;

use arena_match::Launcher;
use arena_testkit::{Client, Host, known_secret};
use serde_json::{Value, json};

/// Starts a server without and one with `--auth`. Returns the servers with their descriptions.
fn both() -> [(Host, Value); 2] {
    [false, true].map(|keys| {
        let host = Host::start_with(|settings| {
            settings.auth.enabled = keys;
            settings.auth.secret = keys.then(known_secret);
            settings.tournaments.enabled = true;
            settings.tournaments.launcher = Some(Launcher { program: "/no/such/launcher".into(), args: Vec::new() });
        });
        let document = host.client().get("/openapi.json").ok();
        (host, document)
    })
}

/// Returns method, path and description of each operation.
fn operations(document: &Value) -> Vec<(String, &str, &Value)> {
    let paths = document["paths"].as_object().expect("paths are an object");
    let items = paths.iter().map(|(path, item)| (path, item.as_object().expect("an item is an object")));
    let operations = items.flat_map(|(path, item)| {
        item.iter().map(move |(method, operation)| (method.to_uppercase(), path.as_str(), operation))
    });
    operations.collect()
}

/// Calls `look` with every value in a document.
fn walk<'d>(value: &'d Value, look: &mut impl FnMut(&'d Value)) {
    look(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, look)),
        Value::Object(fields) => fields.values().for_each(|field| walk(field, look)),
        _ => {}
    }
}

/// Returns status and code of the response to a request with unknown ids.
fn ask(client: &Client, method: &str, path: &str) -> (u16, String) {
    let path = path.replace('{', "no-").replace('}', "");
    let answer = client.request(method, &path, &[], b"");
    let code =
        serde_json::from_slice(&answer.body).ok().and_then(|body: Value| Some(body["code"].as_str()?.to_owned()));
    (answer.status, code.unwrap_or_default())
}

#[test]
fn described_routes_exist_under_both_prefixes() {
    for (host, document) in both() {
        let operations = operations(&document);
        assert!(operations.len() > 30, "{}", operations.len());
        for (method, path, _) in operations {
            let twin = path.strip_prefix("/api/").map(|rest| format!("/api/v1/{rest}"));
            for path in [Some(path.to_owned()), twin].into_iter().flatten() {
                let (status, code) = ask(&host.client(), &method, &path);
                assert!(!["NOT_FOUND", "METHOD_NOT_ALLOWED"].contains(&code.as_str()), "{method} {path}: {code}");
                assert!(status < 500, "{method} {path}: {status}");
                assert_eq!(ask(&host.client(), "PATCH", &path), (405, "METHOD_NOT_ALLOWED".to_owned()), "{path}");
            }
        }
    }
}

#[test]
fn both_prefixes_answer_with_the_same_headers_and_are_one_route_in_the_metrics() {
    let [(host, document), _] = both();
    let (session, _) = host.client().seated("psi");
    // Requests of programs, and of pages of another origin, which take another way through the server.
    for origin in [None, Some(("origin", "https://elsewhere.example"))] {
        for (method, path, _) in operations(&document) {
            let Some(rest) = path.strip_prefix("/api/") else { continue };
            let rest = rest.replace('{', "no-").replace('}', "");
            for query in ["", &format!("?channel={session}&wait=0")] {
                let [one, two] = ["/api/", "/api/v1/"].map(|prefix| {
                    let path = format!("{prefix}{rest}{query}");
                    let mut answer = host.client().request(&method, &path, origin.as_slice(), b"{}");
                    // These name the request.
                    answer.headers.retain(|(name, _)| !["date", "x-request-id"].contains(&name.as_str()));
                    (answer.status, answer.headers)
                });
                assert_eq!(one, two, "{method} {path}{query}");
            }
        }
    }
    let metrics = host.client().get("/metrics");
    assert!(
        metrics.text().contains(r#"route="/api/arena/sync""#) && !metrics.text().contains("/api/v1"),
        "{metrics:?}"
    );
}

#[test]
fn both_prefixes_charge_an_address_alike() {
    let host = Host::start_with(|settings| {
        settings.limits.limit_loopback = true;
        settings.limits.requests_per_second = 1;
        settings.limits.requests_burst = 60;
    });
    let body = "x".repeat(4 * 16 * 1024);
    // The requests, and the number of them in a burst. A full 16 KiB of a body counts as one more request.
    for (at, method, rest, body, most) in
        [(1, "GET", "chat/sync?channel=invites", "", 60), (2, "POST", "chat/send", body.as_str(), 12)]
    {
        for (prefix, net) in [("/api/", 1), ("/api/v1/", 2)] {
            let client = host.client().from_address(Ipv4Addr::new(127, net, at, 1).into());
            let begun = Instant::now();
            let ask = || client.request(method, &format!("{prefix}{rest}"), &[], body.as_bytes()).status;
            let admitted = (0..1000).take_while(|_| ask() != 429).count() as u64;
            // Each second allows one more request.
            let late = begun.elapsed().as_secs() + 1;
            assert!((most..=most + late).contains(&admitted), "{method} {prefix}{rest}: {admitted}");
        }
    }
}

#[test]
fn the_description_is_whole() {
    for (_host, document) in both() {
        let schemas = document["components"]["schemas"].as_object().expect("schemas are an object");
        let mut used = BTreeSet::new();
        walk(&document, &mut |value| {
            assert!(!value.as_str().is_some_and(|text| text.contains("{{")), "a gap is left: {value}");
            if let Some(schema) = value.get("$ref").and_then(Value::as_str) {
                let name = schema.strip_prefix("#/components/schemas/").expect("only schemas are referred to");
                assert!(schemas.contains_key(name), "there is no schema {name}");
                used.insert(name.to_owned());
            }
        });
        let unused: Vec<&String> = schemas.keys().filter(|name| !used.contains(*name)).collect();
        assert!(unused.is_empty(), "nothing refers to {unused:?}");
        let tags: Vec<&Value> = document["tags"].as_array().expect("a list").iter().map(|tag| &tag["name"]).collect();
        let mut names = BTreeSet::new();
        for (method, path, operation) in operations(&document) {
            assert!(tags.contains(&&operation["tags"][0]), "{method} {path} is in no group of the list");
            assert!(operation["summary"].is_string(), "{method} {path} says nothing");
            assert!(names.insert(operation["operationId"].to_string()), "{method} {path} has another's name");
            for response in operation["responses"].as_object().expect("an object").values() {
                assert!(response["description"].is_string(), "{method} {path}: {response}");
            }
        }
    }
}

#[test]
fn one_description_has_the_fields_of_both_modes() {
    let [(_, names), (_, keys)] = both();
    assert_eq!(names, keys);
    let join = &keys["components"]["schemas"]["JoinRequest"];
    let fields = join["properties"].as_object().expect("fields").keys().cloned().collect::<Vec<_>>().join(", ");
    assert_eq!(
        (fields.as_str(), &join["required"]),
        ("from, invite, publicKey, signature, timestamp, userId", &json!(["invite"]))
    );
    // A field of one mode says so.
    let schemas = &keys["components"]["schemas"];
    for (schema, field) in [
        ("JoinRequest", "userId"),
        ("JoinRequest", "publicKey"),
        ("JoinRequest", "signature"),
        ("JoinRequest", "timestamp"),
        ("Joined", "sessionKey"),
    ] {
        let description = schemas[schema]["properties"][field]["description"].as_str().expect("a description");
        assert!(description.contains("`--auth`"), "{schema}.{field}: {description}");
    }
    let sync = &keys["paths"]["/api/arena/sync"]["get"];
    assert!(sync["security"].is_array() && sync["responses"]["401"].is_object());
    assert!(sync["parameters"].to_string().contains("\"from\""));
    assert!(!keys["components"]["schemas"]["Joined"]["required"].to_string().contains("sessionKey"));
}

#[test]
fn the_description_stays_the_same_and_names_the_address_that_was_asked() {
    let host = Host::start();
    let client = host.client();
    let asked = |name: &str| {
        let request = format!("GET /openapi.json HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
        client.raw(request.as_bytes()).expect("an answer")
    };
    let answer = asked("games.example:8443");
    assert_eq!(answer.json()["servers"][0]["url"], "http://games.example:8443");
    assert_eq!(answer.body, asked("games.example:8443").body);
    assert_eq!(answer.header("vary"), Some("host, x-forwarded-proto"));
    assert_eq!(answer.text().replace("games.example:8443", "arena"), client.get("/openapi.json").text());
    assert_eq!(client.get("/openapi.json").text(), Host::start().client().get("/openapi.json").text());
}

#[test]
fn the_page_describes_every_route_and_loads_own_resources_only() {
    for (host, document) in both() {
        let client = host.client();
        let answer = client.get("/docs/api");
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; style-src 'self';"), "{policy}");
        let page = answer.text();
        for (method, path, operation) in operations(&document) {
            assert!(page.contains(&format!("<code>{method} {path}</code>")), "{method} {path}");
            assert!(page.contains(&format!("id={}", operation["operationId"])), "{operation}");
        }
        assert!(!page.contains("<script") && !page.contains("{{") && !page.contains("src="));
        assert!(page.contains("curl -d") || page.contains("curl -H"), "no example");
        // The home page and the agent guide link to the description.
        assert!(client.get("/").text().contains("href=\"/docs/api\""));
        assert!(client.get("/skill.md").text().contains("http://arena/openapi.json"));
        assert_eq!(client.get("/skill.json").ok()["openapi"], "http://arena/openapi.json");
    }
}
