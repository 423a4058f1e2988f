// Moderation beside the message: in a tab in which the administrator has signed in on `/admin`, every message of a
// session has a button that hides it. The token is in the tab's session storage; other visitors see no buttons.

import { make } from "./boards/seats.js";

const token = sessionStorage.getItem("arena.admin");
const session = document.getElementById("session")?.dataset.session;

/** Returns channel and index of a message's element; null for other elements. */
const messageOf = ({ id }) => /^(chat|operator)-(\d+)$/.exec(id);

function addButton(element) {
    const found = messageOf(element);
    if (!found || element.querySelector(":scope > .moderate") || element.querySelector(".withheld")) return;
    const [, name, index] = found;
    const button = make("button", "btn danger moderate", "Hide");
    button.type = "button";
    button.ariaLabel = `Hide message ${index}`;
    button.addEventListener("click", async () => {
        if (!confirm("This deletes the text permanently. Hide the message?")) return;
        button.disabled = true;
        const channel = name === "chat" ? session : `challenge_${session}`;
        try {
            const answer = await fetch("/api/admin/messages/hide", {
                method: "POST",
                headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
                body: JSON.stringify({ channel, index: Number(index) }),
            });
            button.textContent = answer.ok ? "Hidden; reload to see" : `Not hidden: ${(await answer.json()).error}`;
        } catch (error) {
            button.textContent = `Not hidden: ${error.message}`;
        }
    });
    element.append(button);
}

if (token && session) {
    const all = () => document.querySelectorAll("li[id^=chat-], li[id^=operator-]").forEach(addButton);
    all();
    new MutationObserver(all).observe(document.querySelector("main"), { childList: true, subtree: true });
}
