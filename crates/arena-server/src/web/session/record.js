// The page of an ended session: "Check this game" fetches the record, checks it, and lists the results; "Share" shares
// the page's link or copies it.

import { FalseLog, compareWithLog } from "./log-files.js";
import { FalseRecord, Uncheckable, checkRecord } from "./record-check.js";
import { make } from "./boards/seats.js";

/** Returns a number with its noun. */
const count = (number, noun, nouns = `${noun}s`) => `${number} ${number === 1 ? noun : nouns}`;

/** Returns the results as sentences, each with true for a passed check and false for one that wasn't possible. */
function sentences(result, isLogged) {
    const { events, messages, opened, end, seed, signature, proof } = result;
    const withheld = messages - opened;
    return [
        [true, `${count(events, "event")} form an unbroken chain of hashes.`],
        [opened > 0, `${count(opened, "message")} of ${messages} agree with the hashes in the chain.`],
        withheld > 0 && [false, `${count(withheld, "message")} of others can't be checked, because their content is withheld.`],
        seed ? [true, "The seed is the one that was fixed before the game."] : [false, "The game has no seed to compare."],
        signature ? [true, "The arena signed the record."]
            : [false, "The signature wasn't checked: the record has none, or this browser has no Ed25519."],
        proof ? [true, `A proof leads from the record to a checkpoint of the log ${proof.origin}. Its signature wasn't checked.`] : [false, "The record has no proof of its place in the log yet."],
        proof && (isLogged ? [true, `The log still begins with the ${count(proof.size, "leaf", "leaves")} of that checkpoint.`]
            : [false, "The log of this arena wasn't compared: it is another one, or the server didn't send it."]),
        end === null && [false, "The record has no end."],
        [false, "This page doesn't play the game again. `arena verify` does."],
    ].filter(Boolean);
}

/** Compares a record's proof with the log. Returns false if that isn't possible. */
async function isInLog(proof) {
    try {
        return proof !== null && await compareWithLog(proof);
    } catch (error) {
        if (error instanceof FalseLog) throw error;
        return false;
    }
}

/** Fetches and checks the record of a session. Shows the results below the button. */
async function check(button) {
    const part = button.closest("#check");
    const [verdict, list] = [part.querySelector("[role=status]"), part.querySelector("ul")];
    const title = document.querySelector("#session h1");
    title.querySelector(".badge")?.remove();
    button.disabled = true;
    list.replaceChildren();
    verdict.textContent = "Checking …";
    try {
        const answer = await fetch(button.dataset.record, { cache: "no-store", signal: AbortSignal.timeout(30_000) });
        if (!answer.ok) throw new Uncheckable(`The server didn't send the record (status ${answer.status}).`);
        const result = await checkRecord(new Uint8Array(await answer.arrayBuffer()));
        if (result.session !== button.dataset.session) throw new FalseRecord("It is the record of another game.");
        const isLogged = await isInLog(result.proof);
        verdict.textContent = "No contradiction found.";
        title.append(" ", make("span", "badge is-checked", "Checked ✓"));
        for (const [isChecked, text] of sentences(result, isLogged)) {
            list.append(make("li", isChecked ? "" : "soft", `${isChecked ? "✓" : "–"} ${text}`));
        }
        const hash = make("li", "small soft", "Hash of the record: ");
        hash.append(make("code", "", result.hash));
        list.append(hash);
    } catch (error) {
        if (error instanceof FalseRecord) verdict.textContent = `The record is false. ${error.message}`;
        else if (error instanceof FalseLog) verdict.textContent = `The log is false. ${error.message}`;
        else if (error instanceof Uncheckable) verdict.textContent = error.message;
        else verdict.textContent = "The server didn't send the record. Please try again.";
    } finally {
        button.disabled = false;
    }
}

/** Shares the link of the game, or copies it. The link leads to the message that gave away a secret, if there is one. */
async function share(button) {
    const url = new URL(button.dataset.share, location.href);
    const id = document.querySelector("#timeline .flag")?.closest(".message").id;
    if (id) url.hash = id;
    try {
        await navigator.share({ title: document.title, url: url.href });
    } catch (error) {
        if (error.name === "AbortError") return;
        // This browser has no menu for sharing.
        const isCopied = await navigator.clipboard?.writeText(url.href).then(() => true, () => false);
        if (!isCopied) location.href = url.href;
        button.textContent = isCopied ? "Copied" : "Copy the address";
        setTimeout(() => { button.textContent = "Share"; }, 1500);
    }
}

// The parts of the page are replaced when the game ends, so the listener is on the document.
document.addEventListener("click", (event) => {
    const button = event.target.closest("#check button, [data-share]");
    if (button?.dataset.share) share(button);
    else if (button) check(button);
});
