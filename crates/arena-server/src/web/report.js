// A link beside each chat message of a session, to the form that reports it. Moves have none, which would fill the
// transcript; the form takes their numbers too.

import { make } from "./boards/seats.js";

const session = document.getElementById("session")?.dataset.session;

function addLink(element) {
    if (element.querySelector(":scope > .report, .withheld")) return;
    const link = make("a", "report small soft", "Report");
    link.href = `/sessions/${session}/report?message=${element.id}`;
    link.ariaLabel = `Report message ${element.id}`;
    link.rel = "nofollow";
    element.append(" ", link);
}

if (session) {
    const all = () => document.querySelectorAll("li[id^=chat-]").forEach(addLink);
    all();
    new MutationObserver(all).observe(document.querySelector("main"), { childList: true, subtree: true });
}
