//! Pages that a command serves to browsers of this machine.
//!
//! Any web page can send requests to a server on this machine. So the server answers only requests whose `Host` is the
//! loopback, since an attacker may own another name that resolves to the loopback. Response headers keep other pages
//! from reading answers. The pages set their content security policy themselves.

use std::net::Ipv4Addr;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::net::TcpListener;

use crate::exit::{Exit, Failure};
use crate::output::{Style, print, print_line};
use crate::serve::{runtime, stop_signal};

/// Serves pages on 127.0.0.1 until a signal stops the process, and prints their address. Port 0 means any free port.
/// `what` names the pages in the plural, such as `replays`.
///
/// # Errors
/// [`Exit::CannotListen`] if the port is taken.
pub fn serve(what: &str, port: u16, pages: Router, style: Style) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::new(
            Exit::CannotListen,
            format_args!("cannot listen on 127.0.0.1:{port}: {error}; choose another port, or 0 for a free one"),
        )
    };
    runtime()?.block_on(async {
        let stop = stop_signal()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(cannot)?;
        let url = format!("http://{}/", listener.local_addr().map_err(cannot)?);
        match style {
            Style::Json => print_line(&json!({"url": url}))?,
            Style::Pretty | Style::Compact => print(&format!("{what} are at {url}"))?,
        }
        let pages = pages.layer(middleware::from_fn(guard));
        let served = axum::serve(listener, pages).with_graceful_shutdown(stop).await;
        served.map_err(|error| Failure::caused(Exit::Internal, &error))
    })
}

/// Refuses requests with a `Host` other than the loopback, and adds security headers to all answers.
async fn guard(request: Request, next: Next) -> Response {
    let mut answer = match is_local(request.headers()) {
        true => next.run(request).await,
        false => (
            StatusCode::MISDIRECTED_REQUEST,
            "use 127.0.0.1 or localhost: this server accepts requests of its own machine only\n",
        )
            .into_response(),
    };
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        // Answers aren't cached, since a later run of the command may serve something else at the same URL.
        (header::CACHE_CONTROL, "no-store"),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Returns true if the `Host` of a request is the loopback. Any port is allowed, since the server's port may be
/// forwarded from another port.
fn is_local(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return false };
    let is_port =
        |text: &str| text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| host.strip_prefix(name).is_some_and(is_port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_loopback_are_answered() {
        let check = |host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            is_local(&headers)
        };
        for host in ["127.0.0.1:4000", "localhost", "localhost:80", "[::1]:9"] {
            assert!(check(host), "{host}");
        }
        for host in
            ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "127.0.0.1:x", "10.0.0.1:80"]
        {
            assert!(!check(host), "{host}");
        }
    }
}
