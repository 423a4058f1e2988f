// The administration page: refreshes the server's status every five seconds and sends moderation requests. Each request
// carries the token in a header. The token stays in this tab's session storage, which other tabs and sites can't read
// and which ends with the tab.

import { timeElement } from "./page.js";
import { make } from "./boards/seats.js";
import { wrap } from "./message.js";

/** Refresh interval in milliseconds. */
const EVERY = 5000;
const KEPT = "arena.admin";
/** HTTP statuses of requests that a limit or an overloaded server rejected. */
const LIMITS = { 403: "banned", 408: "too slow", 413: "too large", 429: "too many", 503: "busy" };

const at = (id) => document.getElementById(id);
const door = at("door");
const inside = at("inside");
const refusal = at("refusal");

let token = sessionStorage.getItem(KEPT);
let timer;
/** The request counts of the previous refresh, and its time. */
let before;

class Refused extends Error {
    constructor(status, text) {
        super(text);
        this.status = status;
    }
}

/** Sends a request with the administrator's token. */
async function ask(path, body) {
    const headers = { authorization: `Bearer ${token}` };
    const request = body === undefined ? { headers } : { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) };
    const answer = await fetch(path, request);
    const text = await answer.text();
    if (answer.ok) return text;
    let message = text;
    try {
        message = JSON.parse(text).error;
    } catch {
        // A proxy's error may not be JSON.
    }
    throw new Refused(answer.status, message);
}

const read = async (path) => JSON.parse(await ask(path));

/** Parses metrics in the Prometheus text format: name, labels, value. */
function numbers(text) {
    const lines = text.split("\n").filter((line) => line && !line.startsWith("#"));
    return lines.map((line) => {
        const [, name, labels = "", value] = /^(\w+)(?:\{(.*)\})? ([^ ]+)/.exec(line) ?? [];
        const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text]);
        return { name, labels: Object.fromEntries(pairs), value: Number(value) };
    });
}

/** Builds a table of texts and elements. Columns from index `right` on are numbers. */
function table(head, rows, right = head.length) {
    if (!rows.length) return make("p", "empty", "None");
    const cell = (tag, content, column) => {
        const made = wrap(tag, column >= right ? "number" : "", content);
        if (tag === "th") made.scope = "col";
        return made;
    };
    const row = (tag, cells) => wrap("tr", "", ...cells.map((content, column) => cell(tag, content, column)));
    return wrap("table", "", wrap("thead", "", row("th", head)), wrap("tbody", "", ...rows.map((cells) => row("td", cells))));
}

const text = (value) => make("bdi", "", String(value));

function bytes(count) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    const power = Math.min(Math.floor(Math.log2(Math.max(count, 1)) / 10), units.length - 1);
    return `${(count / 2 ** (10 * power)).toFixed(power ? 1 : 0)} ${units[power]}`;
}

function count(name, all, wanted = () => true) {
    return all.filter((each) => each.name === name && wanted(each.labels)).reduce((sum, { value }) => sum + value, 0);
}

/** Sums the responses with a status, since the start of the server and since the previous refresh. */
function responses(status, all, known) {
    const rows = all.filter(({ name, labels }) => name === "arena_http_requests_total" && labels.status === status);
    const total = rows.reduce((sum, { value }) => sum + value, 0);
    const earlier = rows.reduce((sum, each) => sum + (known?.get(keyOf(each)) ?? 0), 0);
    return { total, latest: known ? total - earlier : 0 };
}

const keyOf = ({ labels }) => `${labels.method} ${labels.route} ${labels.status}`;

/** The conditions that need the administrator, each with its sentence. */
const NEEDS = [
    ({ ready }) => ready.error && `The server isn't ready: ${ready.error}.`,
    ({ count }) => count("500").total && `${count("500").total} requests failed by a fault of the server since its start; the log names each.`,
    ({ count }) => count("503").latest && `${count("503").latest} requests were refused since the last update: the server is busy or its store is out of reach.`,
    ({ count }) => count("429").latest && `${count("429").latest} requests exceeded a rate limit since the last update.`,
    ({ gauge }) => gauge("arena_nats_connected") === 0 && "NATS is out of reach, so changes of other nodes arrive later.",
    ({ gauge }) => Math.abs(gauge("arena_clock_behind_seconds") ?? 0) > 1 && "This machine's clock is wrong by more than a second.",
];

/** Shows first whether all is well, and otherwise each condition that needs the administrator. */
function showNeeds(ready, all, known) {
    const gauge = (name) => all.find((each) => each.name === name)?.value;
    const facts = { ready, gauge, count: (status) => responses(status, all, known) };
    const needs = NEEDS.map((need) => need(facts)).filter(Boolean);
    const title = needs.length ? `${needs.length} ${needs.length === 1 ? "thing needs" : "things need"} you` : "All is well";
    // Screen readers announce changes only.
    if (at("well-title").textContent !== title) at("well-title").textContent = title;
    at("well").dataset.well = needs.length === 0;
    at("needs").replaceChildren(...needs.map((need) => make("li", "", need)));
}

function showRequests(all) {
    const now = performance.now();
    const requests = all.filter(({ name }) => name === "arena_http_requests_total");
    const known = new Map(requests.map((each) => [keyOf(each), each.value]));
    const seconds = before ? (now - before.at) / 1000 : undefined;
    const rate = (each) => (seconds ? (each.value - (before.known.get(keyOf(each)) ?? 0)) / seconds : undefined);
    const routes = new Map();
    for (const each of requests) {
        const route = `${each.labels.method} ${each.labels.route || "unknown path"}`;
        const sum = routes.get(route) ?? { value: 0, rate: 0 };
        routes.set(route, { value: sum.value + each.value, rate: sum.rate + (rate(each) ?? 0) });
    }
    const busiest = [...routes].sort(([, a], [, b]) => b.rate - a.rate || b.value - a.value).slice(0, 15);
    const perSecond = (value) => (seconds ? value.toFixed(1) : "…");
    at("requests").replaceChildren(table(["Route", "Per second", "Total"], busiest.map(([route, sum]) => [make("code", "", route), perSecond(sum.rate), String(sum.value)]), 1));
    const hit = requests.filter(({ labels }) => LIMITS[labels.status]).sort((a, b) => b.value - a.value).slice(0, 15);
    at("limits").replaceChildren(table(["Route", "Status", "Total"], hit.map((each) => [make("code", "", `${each.labels.method} ${each.labels.route}`), `${each.labels.status} ${LIMITS[each.labels.status]}`, String(each.value)]), 2));
    before = { at: now, known };
    return [...routes.values()].reduce((sum, { rate }) => sum + rate, 0);
}

async function look() {
    clearTimeout(timer);
    if (!token) return;
    if (!document.hidden) {
        try {
            const [audit, bans, budgets, active, metrics, ready] = await Promise.all([
                read("/api/admin/audit?limit=20"), read("/api/admin/bans"), read("/api/admin/budgets"), read("/api/challenges?status=active&limit=20"),
                ask("/metrics"), fetch("/ready").then((answer) => answer.json()),
            ]);
            show(audit, bans, budgets, active, numbers(metrics), ready);
            [door.hidden, inside.hidden, refusal.hidden] = [true, false, true];
        } catch (error) {
            if (error.status === 401) return leave("Invalid administrator token");
            refuse(error.message);
        }
    }
    timer = setTimeout(look, EVERY);
}

function show(audit, bans, { budgets, addresses }, active, all, ready) {
    showNeeds(ready, all, before?.known);
    const rate = showRequests(all);
    const facts = [
        [ready.status ?? "not ready", "health"],
        [bytes(count("arena_store_bytes", all)), "store"],
        [rate.toFixed(1), "requests per second"],
        [count("arena_connections", all), "connections"],
        [count("arena_stream_subscribers", all), "open streams"],
        [count("arena_sessions", all, ({ status }) => status === "active"), "active sessions"],
        [count("arena_sessions", all, ({ status }) => status === "open"), "open sessions"],
    ];
    at("state").replaceChildren(...facts.map(([value, name]) => wrap("div", "", make("dt", "", name), make("dd", "", String(value)))));
    at("updated").replaceChildren("Updated ", timeElement(Date.now()));
    const session = (each) => {
        const link = make("a", "", each.challengeType);
        link.href = `/sessions/${encodeURIComponent(each.id)}`;
        return [link, make("code", "", `${each.id.slice(0, 8)}…`), timeElement(each.createdAt), button("Remove", () => remove(each.id))];
    };
    at("sessions").replaceChildren(table(["Game", "Session", "Started", ""], active.challenges.map(session)));
    const ban = (each) => {
        const [kind, who] = each.userId === undefined ? ["address", each.address] : ["userId", each.userId];
        return [text(who), text(each.reason), dated(each.at), button("Lift", () => act("/api/admin/bans/lift", { [kind]: who }, "Ban lifted"))];
    };
    at("bans").replaceChildren(table(["Banned", "Reason", "Since", ""], bans.bans.map(ban)));
    const budget = ({ name, used, limit, setting, ofAddress }) => [make("code", "", setting), amountText(name, used), amountText(name, limit), amountText(name, ofAddress?.limit)];
    at("budgets").replaceChildren(table(["Budget", "Used", "Limit", "Per address"], budgets.map(budget), 1));
    at("addresses").replaceChildren(table(["Address", "Use"], addresses.map((each) => [text(each.address), useText(each)])));
    const entry = (each) => [String(each.no), dated(each.at), text(each.address), text(each.action), text(detailText(each.detail))];
    at("audit").replaceChildren(table(["#", "Time", "Address", "Action", "Details"], audit.entries.map(entry)));
}

/** Formats the amount of a budget. */
function amountText(name, value) {
    return value === undefined ? "none" : name.endsWith("Bytes") ? bytes(value) : name.endsWith("Ms") ? `${value} ms` : String(value);
}

/** Formats the resources of an address, such as `3 connections, 2 refusals in a day`. */
function useText({ used, refusals }) {
    const words = (name) => name.replace(/(Bytes|Ms)$/, "").replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
    const parts = Object.entries(used).map(([name, value]) => `${amountText(name, value)} ${words(name)}`);
    if (refusals > 0) parts.push(`${refusals} ${refusals === 1 ? "refusal" : "refusals"} in a day`);
    return parts.join(", ");
}

/** Formats the details of an action, such as `user: ada, reason: spam`. */
function detailText(detail) {
    if (detail === null || typeof detail !== "object") return String(detail ?? "");
    const value = (each) => (typeof each === "object" ? JSON.stringify(each) : each);
    return Object.entries(detail).map(([name, each]) => `${name}: ${value(each)}`).join(", ");
}

/** Makes a <time> with date and time. */
function dated(ms) {
    const element = make("time", "", new Date(ms).toLocaleString());
    element.dateTime = new Date(ms).toISOString();
    return element;
}

function button(name, click) {
    const made = make("button", name === "Remove" ? "btn danger" : "btn", name);
    made.type = "button";
    made.addEventListener("click", click);
    return made;
}

function refuse(text) {
    refusal.textContent = text;
    refusal.hidden = false;
}

/** Sends a moderation request, then refreshes the page. */
async function act(path, body, done) {
    refusal.hidden = true;
    at("done").textContent = "";
    try {
        const result = JSON.parse(await ask(path, body));
        at("done").textContent = typeof done === "function" ? done(result) : done;
        await look();
    } catch (error) {
        refuse(error.message);
    }
}

function remove(id) {
    if (!confirm("This deletes the session and its scores permanently. Remove the session?")) return;
    act(`/api/admin/sessions/${encodeURIComponent(id)}/remove`, {}, "Session removed");
}

/** Path, body and success message of each form's request. */
const ACTS = {
    hide: ({ channel, index }) => ["/api/admin/messages/hide", { channel, index: Number(index) }, "Message hidden"],
    remove: ({ id }) => [`/api/admin/sessions/${encodeURIComponent(id)}/remove`, {}, "Session removed"],
    ban: ({ what, who, reason }) => ["/api/admin/bans", { [what]: who, reason }, "Ban added"],
    benchmark: ({ user, is }) => [`/api/admin/users/${encodeURIComponent(user)}/benchmark`, { isBenchmark: is === "true" }, "Profile updated"],
    recompute: () => ["/api/admin/recompute", {}, (result) => `Counted ${result.games} games of ${result.users} users; corrected ${result.wrong.length} users`],
};

for (const form of document.querySelectorAll("form[data-do]")) {
    form.addEventListener("submit", async (event) => {
        event.preventDefault();
        if (form.dataset.sure && !confirm(form.dataset.sure)) return;
        const pressed = form.querySelector("button");
        pressed.disabled = true;
        await act(...ACTS[form.dataset.do](Object.fromEntries(new FormData(form))));
        pressed.disabled = false;
    });
}

function leave(why) {
    clearTimeout(timer);
    sessionStorage.removeItem(KEPT);
    [token, before] = [null, undefined];
    [door.hidden, inside.hidden] = [false, true];
    refusal.hidden = !why;
    refusal.textContent = why ?? "";
}

at("leave").addEventListener("click", () => leave());
at("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    token = at("token").value;
    at("token").value = "";
    sessionStorage.setItem(KEPT, token);
    look();
});
if (token) look();
else leave();
