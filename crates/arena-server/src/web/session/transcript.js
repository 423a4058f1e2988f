// The tools of a transcript: a search, a copy as Markdown, and links to messages of earlier pages.

import { make } from "./boards/seats.js";

/** Returns an item's text without its time. */
function textOf(item) {
    const copy = item.cloneNode(true);
    for (const part of copy.querySelectorAll(".at, .head, .moderate, summary")) part.remove();
    return copy.textContent.replace(/\s+/g, " ").trim();
}

/** Returns an item as Markdown: chat with the sender's name, notes as quotes, and all other events in italics. */
function toMarkdown(item) {
    const text = textOf(item).replace(/([\\`*_<>[\]#])/g, "\\$1");
    const time = item.querySelector("time")?.dateTime.slice(11, 16) ?? "";
    const names = [...item.querySelectorAll(".head .who")].map((who) => who.textContent);
    if (item.classList.contains("bubble")) return `**${names.join(" → ")}** (${time}): ${text}`;
    const heading = item.querySelector("summary")?.textContent;
    if (item.classList.contains("note")) return `> ${heading ? `${heading}: ` : ""}${text}`;
    return `_${text}_`;
}

/** Returns the items of all messages, also of folded ones. */
const messagesIn = (list) => [...list.querySelectorAll("li.message")];

/** Hides the items without the searched text, and opens the folded ones with it. */
function search(list, words, result) {
    const wanted = words.trim().toLowerCase();
    let found = 0;
    for (const item of messagesIn(list)) {
        item.hidden = wanted !== "" && !item.textContent.toLowerCase().includes(wanted);
        if (!item.hidden) found += 1;
    }
    for (const run of list.querySelectorAll(":scope > .run")) {
        run.hidden = !run.querySelector("li:not([hidden])");
        run.firstElementChild.open = wanted !== "" && !run.hidden;
    }
    result.textContent = wanted === "" ? "" : `${found} found`;
}

/** Adds the tools to the transcript. */
function equip() {
    const transcript = document.getElementById("transcript");
    const list = document.getElementById("timeline");
    if (!list || transcript.querySelector(".tools")) return;
    const tools = make("p", "tools row");
    const box = make("input");
    Object.assign(box, { type: "search", placeholder: "Search" });
    box.setAttribute("aria-label", "Search the transcript");
    const result = make("span", "small soft");
    result.setAttribute("role", "status");
    box.addEventListener("input", () => search(list, box.value, result));
    tools.append(box, result);
    if (navigator.clipboard) {
        const copy = make("button", "btn", "Copy as Markdown");
        copy.type = "button";
        copy.addEventListener("click", async () => {
            const items = messagesIn(list).filter((item) => !item.hidden);
            await navigator.clipboard.writeText(`${items.map(toMarkdown).join("\n\n")}\n`);
            copy.textContent = "Copied";
            setTimeout(() => { copy.textContent = "Copy as Markdown"; }, 1500);
        });
        tools.append(copy);
    }
    list.before(tools);
    if (document.getElementById("seat")) equipSeat(transcript);
}

/** Adds the switch that shows all messages of a seat. Without it, only chat and news are shown. */
function equipSeat(transcript) {
    const isAll = make("input");
    Object.assign(isAll, { type: "checkbox", checked: !transcript.classList.contains("brief") });
    isAll.addEventListener("change", () => transcript.classList.toggle("brief", !isAll.checked));
    const label = make("label", "check small soft");
    label.append(isAll, "All messages");
    transcript.querySelector(".head").append(label);
}

/** Loads the page with the address's message, if the message isn't on this page. */
function follow() {
    const id = /^#((?:operator|chat)-\d+)$/.exec(location.hash)?.[1];
    const item = id && document.getElementById(id);
    if (item) {
        item.querySelector("details")?.setAttribute("open", "");
        const run = item.closest(".run");
        if (run) {
            run.firstElementChild.open = true;
            item.scrollIntoView({ block: "nearest" });
        }
    }
    const address = new URL(location.href);
    if (!id || item || address.searchParams.get("at") === id) return;
    address.searchParams.set("at", id);
    location.replace(address.href);
}

equip();
follow();
addEventListener("hashchange", follow);
document.addEventListener("transcript", equip);
