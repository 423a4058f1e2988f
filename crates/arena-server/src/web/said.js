// What was said in a session, as the server writes it: messages as items of a list.

import { timeElement } from "./page.js";
import { stateOf } from "./live.js";
import { make, seatClass } from "./boards/seats.js";

/** Characters of a message that are shown. */
const LONGEST = 1500;

/** An element with others and texts in it. */
export function wrap(tag, classes, ...children) {
    const made = make(tag, classes);
    made.append(...children);
    return made;
}

/** Words messages for a session, of which it wants to know the id (`session`), and the players' `ids` and `names` by seat. */
export class Said {
    constructor({ session, ids, names }) {
        this.session = session;
        this.ids = ids;
        this.names = names;
    }

    /** Who somebody is in this session. */
    who(party) {
        const seat = this.ids.indexOf(party);
        if (party === "operator") return make("b", "who operator", "Operator");
        if (seat < 0) return wrap("b", "who", make("bdi", "", party));
        const made = make("b", `who ${seatClass(seat)}`, this.names[seat]);
        made.title = party;
        return made;
    }

    /** Words players again who had no known seat when they were first worded. */
    renew(words) {
        for (const word of words) {
            if (!word.title && this.ids.includes(word.textContent)) word.replaceWith(this.who(word.textContent));
        }
    }

    /** A message as an item of its channel. */
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
                : "Private: not to be read here.";
            return make("p", "withheld", text);
        }
        const begins = message.from === "operator" && message.content.startsWith('{"config"');
        const told = begins ? { asked: [] } : stateOf(message);
        if (told) {
            const text = make("p", "text", begins ? "The game begins." : "The state of the game.");
            if (told.result) text.replaceChildren("The end of the game: ", make("bdi", "", told.result.termination), ".");
            if (told.asked.length) {
                text.append(" Asked: ");
                told.asked.forEach((player, at) => text.append(at ? ", " : "", this.who(player)));
                text.append(".");
            }
            const data = make("a", "", "as data");
            data.href = `/api/arena/sync?channel=${this.session}&limit=1&index=${message.index}`;
            text.append(" ", data);
            return text;
        }
        const chars = [...message.content];
        const text = wrap("p", "text", make("bdi", "", chars.slice(0, LONGEST).join("")));
        if (chars.length > LONGEST) text.append(make("span", "soft", ` … and ${chars.length - LONGEST} characters more`));
        return text;
    }
}
