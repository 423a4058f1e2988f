// A tournament while it is played: the page is asked for again, and what has changed is put in its place.

import { localise } from "./page.js";

/** Milliseconds between two looks. */
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
                live.replaceWith(document.adoptNode(next));
                for (const element of next.querySelectorAll("time[datetime]")) localise(element);
            }
        } catch {
            // The server may be starting again; the next look will tell.
        }
    }
    setTimeout(look, EVERY);
}

setTimeout(look, EVERY);
