// Messages as list items, in the same form as `sessions.rs` renders them.

import { timeElement } from "./page.js";
import { stateOf } from "./live.js";
import { make, seatClass } from "./boards/seats.js";

/** Number of characters after which a message is cut. */
const LONGEST = 1500;

/** Makes an element with children. */
export function wrap(tag, classes, ...children) {
    const made = make(tag, classes);
    made.append(...children);
    return made;
}

/** Renders the messages of a session, from its id (`session`) and the players' `ids` and `names` by seat. */
export class MessageRenderer {
    constructor({ session, ids, names }) {
        this.session = session;
        this.ids = ids;
        this.names = names;
    }

    /** Makes a party's label. */
    who(party) {
        const seat = this.ids.indexOf(party);
        if (party === "operator") return make("b", "who operator", "Operator");
        if (seat < 0) return wrap("b", "who", make("bdi", "", party));
        const made = make("b", `who ${seatClass(seat)}`, this.names[seat]);
        made.title = party;
        return made;
    }

    /** Updates the labels of players whose seat was unknown when they were rendered. */
    renew(words) {
        for (const word of words) {
            if (!word.title && this.ids.includes(word.textContent)) word.replaceWith(this.who(word.textContent));
        }
    }

    /** Makes a list item from a message. */
    item(message, channel) {
        const head = wrap("p", "head", this.who(message.from));
        if (message.to) head.append(" → ", this.who(message.to));
        if (message.type) head.append(" ", make("code", "", message.type));
        const link = wrap("a", "at", timeElement(message.timestamp));
        const item = wrap("li", message.to ? "message private" : "message", head, this.#text(message));
        item.id = `${channel}-${message.index}`;
        link.href = `#${item.id}`;
        head.append(link);
        return item;
    }

    #text(message) {
        if (message.redacted) {
            const text = message.contentSha256
                ? `Hidden by the administrator. SHA-256 of the text: ${message.contentSha256}`
                : "Private message";
            return make("p", "withheld", text);
        }
        const begins = message.from === "operator" && message.content.startsWith('{"config"');
        const update = begins ? { asked: [] } : stateOf(message);
        if (update) {
            const text = make("p", "text", begins ? "Game started." : "Game state.");
            if (update.result) text.replaceChildren("Game ended: ", make("bdi", "", update.result.termination), ".");
            if (update.asked.length) {
                text.append(" To move: ");
                update.asked.forEach((player, at) => text.append(at ? ", " : "", this.who(player)));
                text.append(".");
            }
            const data = make("a", "", "JSON");
            data.href = `/api/arena/sync?channel=${this.session}&limit=1&index=${message.index}`;
            text.append(" ", data);
            return text;
        }
        const chars = [...message.content];
        const text = wrap("p", "text", make("bdi", "", chars.slice(0, LONGEST).join("")));
        if (chars.length > LONGEST) text.append(make("span", "soft", ` … ${chars.length - LONGEST} more characters`));
        return text;
    }
}
