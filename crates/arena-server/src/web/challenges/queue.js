// The page of a waiting visitor: waits for the match, and opens the seat.

/** Wait of one request in seconds, and minimum interval between requests in milliseconds. */
const WAIT_S = 20;
const INTERVAL = 2000;

const connection = document.getElementById("connection");
const { invite } = document.getElementById("queue").dataset;
let request;

/** The field for the visitor's name, which the browser remembers. */
const name = document.getElementById("user");
if (name) name.value = localStorage.getItem("name") ?? "";
name?.addEventListener("input", () => localStorage.setItem("name", name.value));

function pause(ms) {
    return new Promise((resolve) => { setTimeout(resolve, ms); });
}

/**
 * Takes the matched seat under the typed name, and opens its page. A seat that isn't taken here, such as in authentication
 * mode, has a form on its page.
 */
async function sitDown(invite) {
    const body = name && new URLSearchParams({ do: "join", user: name.value });
    if (body) await fetch(`/play/${invite}`, { method: "POST", body, redirect: "manual" }).catch(() => {});
    location.replace(`/play/${invite}${body ? "" : "#join"}`);
}

/** Polls the ticket until it is matched or doesn't wait any longer. */
async function poll() {
    request?.abort();
    request = new AbortController();
    const { signal } = request;
    while (!signal.aborted) {
        const started = performance.now();
        try {
            const answer = await fetch(`/api${location.pathname}?wait=${WAIT_S}`, { signal });
            // The server's page explains why the ticket doesn't wait.
            if (answer.status === 404) return location.reload();
            if (!answer.ok) throw new Error(`status ${answer.status}`);
            const place = await answer.json();
            if (place.state === "matched") return sitDown(place.invite);
            connection.textContent = "";
        } catch {
            if (signal.aborted) return;
            connection.textContent = "The server doesn't answer. It keeps your place for a minute, and this page tries again.";
        }
        // The server answers at once while it stops or has many connections.
        await pause(Math.max(0, INTERVAL - (performance.now() - started)));
    }
}

addEventListener("pagehide", () => request?.abort());
addEventListener("pageshow", (event) => { if (event.persisted) poll(); });
if (invite) sitDown(invite);
else poll();
