// A running tournament: fetches the page again and replaces its content.

import { localize } from "./page.js";

/** Refresh interval in milliseconds. */
const EVERY = 3000;

async function look() {
    const live = document.getElementById("live");
    if (live.dataset.goingOn !== "true") return;
    if (!document.hidden) {
        try {
            const answer = await fetch(location.href);
            const page = new DOMParser().parseFromString(await answer.text(), "text/html");
            const next = page.getElementById("live");
            if (next && !live.contains(document.activeElement)) {
                // Opened details stay open.
                const opened = [...live.querySelectorAll("details")].map(({ open }) => open);
                live.replaceWith(document.adoptNode(next));
                next.querySelectorAll("details").forEach((details, at) => { details.open ||= Boolean(opened[at]); });
                for (const element of next.querySelectorAll("time[datetime]")) localize(element);
            }
        } catch {
            // The server may be restarting; the next refresh retries.
        }
    }
    setTimeout(look, EVERY);
}

setTimeout(look, EVERY);
