// The body of an asynchronous script that finds faults of a page's layout. It passes them to its last argument: a list
// of sentences, each with a selector, a text and positions in CSS pixels.
//
// A box that scrolls may be larger inside than outside. All other text has to be visible as a whole.

const done = arguments[arguments.length - 1];

/** Rounding errors in pixels that are not faults. */
const SLACK = 2;

/** Maximum number of reported faults of each kind. */
const MOST = 4;

const room = document.documentElement.clientWidth;

const styles = new Map();
const styleOf = (element) => styles.get(element) ?? styles.set(element, getComputedStyle(element)).get(element);

const SEEN = { visibilityProperty: true, opacityProperty: true, contentVisibilityAuto: true };

/** True for elements that only screen readers get: they are clipped to a point or far outside of the page. */
const isForReadersOnly = (element) => Boolean(element.closest(".hidden, .skip"));

const isVisible = (element) => element.checkVisibility(SEEN) && !isForReadersOnly(element);

/** Returns a short selector of an element, with its parent. */
function nameOf(element) {
    const own = (one) => {
        const classes = (one.getAttribute("class") ?? "").trim().split(/\s+/).filter(Boolean).map((name) => `.${name}`);
        return one.localName + (one.id ? `#${one.id}` : classes.join(""));
    };
    return element.parentElement && !element.id ? `${own(element.parentElement)} > ${own(element)}` : own(element);
}

const quote = (text) => JSON.stringify(text.trim().replace(/\s+/g, " ").slice(0, 40));

const span = ({ left, right, top, bottom }) => `x ${Math.round(left)} to ${Math.round(right)}, y ${Math.round(top)} to ${Math.round(bottom)}`;

const frames = new Map();

/**
 * Returns the part of the page in which an element's content is visible. `hard` is the box of the nearest ancestors
 * that cut their content off, `soft` also considers ancestors that scroll.
 */
function frameOf(element) {
    if (!element || element === document.body || element === document.documentElement) {
        const all = { left: -Infinity, right: Infinity, top: -Infinity, bottom: Infinity };
        return { hard: all, soft: all, isLoose: false, scrolls: false };
    }
    const known = frames.get(element);
    if (known) return known;
    const style = styleOf(element);
    const outer = frameOf(element.parentElement);
    // A fixed or sticky element may stand over others while the page is scrolled.
    const frame = { ...outer, isLoose: outer.isLoose || ["fixed", "sticky"].includes(style.position) };
    const isCut = (value) => value === "hidden" || value === "clip";
    const isScroll = (value) => value === "auto" || value === "scroll";
    const [x, y] = [style.overflowX, style.overflowY];
    if ((x !== "visible" || y !== "visible") && style.display !== "inline" && style.display !== "contents") {
        const box = element.getBoundingClientRect();
        const within = (area, hasX, hasY) => ({
            left: hasX ? Math.max(area.left, box.left) : area.left, right: hasX ? Math.min(area.right, box.right) : area.right,
            top: hasY ? Math.max(area.top, box.top) : area.top, bottom: hasY ? Math.min(area.bottom, box.bottom) : area.bottom,
        });
        // Content of a scrolling box isn't cut off by the boxes around the scrolling box.
        if (isScroll(x) || isScroll(y)) Object.assign(frame, { hard: within({ left: -Infinity, right: Infinity, top: -Infinity, bottom: Infinity }, isCut(x), isCut(y)), scrolls: true });
        else frame.hard = within(frame.hard, isCut(x), isCut(y));
        frame.soft = within(frame.soft, x !== "visible", y !== "visible");
    }
    frames.set(element, frame);
    return frame;
}

/** Returns the visible part of a box; null if there is none. */
function visiblePart(box, { soft }) {
    const part = {
        left: Math.max(box.left, soft.left), right: Math.min(box.right, soft.right),
        top: Math.max(box.top, soft.top), bottom: Math.min(box.bottom, soft.bottom),
    };
    return part.right - part.left > SLACK && part.bottom - part.top > SLACK ? part : null;
}

/** Returns the width and height of the area that two boxes share. */
const shared = (one, other) => [
    Math.min(one.right, other.right) - Math.max(one.left, other.left),
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top),
];

const contains = (one, other) =>
    one.left <= other.left + SLACK && one.right >= other.right - SLACK && one.top <= other.top + SLACK && one.bottom >= other.bottom - SLACK;

/** Calls `report` with each pair of items whose boxes overlap. */
function forOverlaps(items, report) {
    items.sort((one, other) => one.box.top - other.box.top);
    for (const [at, one] of items.entries()) {
        for (let next = at + 1; next < items.length && items[next].box.top < one.box.bottom - SLACK; next++) {
            const other = items[next];
            const [width, height] = shared(one.box, other.box);
            if (width > SLACK && height > SLACK && one.isLoose === other.isLoose) report(one, other);
        }
    }
}

/** Returns the visible pieces of text: a box for each line of a text node, or for each text of a picture. */
function pieces() {
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const element = node.parentElement;
        if (!node.data.trim() || ["SCRIPT", "STYLE", "NOSCRIPT", "OPTION"].includes(element.tagName) || !isVisible(element)) continue;
        const drawn = element.closest("svg");
        if (drawn && !element.closest("text")) continue;
        range.selectNodeContents(node);
        const boxes = drawn ? [element.closest("text").getBoundingClientRect()] : range.getClientRects();
        for (const box of boxes) {
            if (box.width > 0 && box.height > 0) found.push({ element, drawn, text: node.data, full: box });
        }
    }
    return found;
}

/** Finds text that a box cuts off, or that the screen doesn't contain. */
function findClipped(texts, faults) {
    for (const { element, drawn, text, full } of texts) {
        const frame = frameOf(drawn ?? element);
        // A line box contains room for accents and descenders, which most lines don't use.
        const spare = full.height / 4 + 1;
        const { hard } = frame;
        if (full.left < hard.left - SLACK || full.right > hard.right + SLACK || full.top < hard.top - spare || full.bottom > hard.bottom + spare) {
            faults.clipped.push(`${nameOf(element)} ${quote(text)} is cut off: ${span(full)} in ${span(hard)}`);
        } else if (!frame.scrolls && (full.left < -SLACK || full.right > room + SLACK)) {
            faults.wide.push(`${nameOf(element)} ${quote(text)} is outside of the screen: ${span(full)} of ${room} px`);
        }
    }
    // Without a box that cuts off, the text of a button can still stand outside of the button.
    for (const element of document.querySelectorAll("button, summary, .btn, .chip, .badge")) {
        if (!isVisible(element) || element.scrollWidth <= element.clientWidth + SLACK || element.clientWidth === 0) continue;
        faults.clipped.push(`${nameOf(element)} ${quote(element.innerText)} is wider than its box: ${element.scrollWidth} of ${element.clientWidth} px`);
    }
}

/** Finds boxes that are wider than the screen. */
function findWide(faults) {
    if (document.documentElement.scrollWidth <= room) return;
    faults.wide.push(`the page is ${document.documentElement.scrollWidth} px wide, the screen ${room} px`);
    for (const element of document.querySelectorAll("body *")) {
        const box = element.getBoundingClientRect();
        if (box.right > room + 1 && isVisible(element) && !frameOf(element.parentElement).scrolls) {
            faults.wide.push(`${nameOf(element)} is outside of the screen: ${span(box)} of ${room} px`);
        }
    }
}

/** Finds controls that lie over each other. A control inside of another one, or on a picture, is no fault. */
function findOverlappingControls(faults) {
    const items = [];
    for (const element of document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [role=button]")) {
        if (!isVisible(element)) continue;
        const frame = frameOf(element.parentElement);
        // A link of several lines has several boxes.
        const boxes = element.localName === "a" ? element.getClientRects() : [element.getBoundingClientRect()];
        for (const full of boxes) {
            const box = visiblePart(full, frame);
            if (box) items.push({ element, box, isLoose: frameOf(element).isLoose });
        }
    }
    forOverlaps(items, (one, other) => {
        // Players with equal numbers have the same point in a plot; the table below it has links to all of them.
        if (one.element.closest("svg.picture") && other.element.closest("svg.picture")) return;
        if (one.element === other.element || one.element.contains(other.element) || other.element.contains(one.element)) return;
        if (contains(one.box, other.box) || contains(other.box, one.box)) {
            // One control on top of another is a fault only if the lower one can't be reached beside it.
            const [inner, outer] = contains(one.box, other.box) ? [other, one] : [one, other];
            if (!contains(inner.box, outer.box)) return;
        }
        faults.controls.push(
            `${nameOf(one.element)} ${quote(one.element.textContent)} and ${nameOf(other.element)} ${quote(other.element.textContent)} overlap: ${span(one.box)}; ${span(other.box)}`,
        );
    });
}

/** Finds texts that lie over each other. */
function findOverlappingTexts(texts, faults) {
    const items = [];
    for (const { element, drawn, text, full } of texts) {
        // A piece stands over the coordinate of its square, and an actor on its base.
        if (element.closest("svg.board, svg.chess, svg.game")) continue;
        const box = visiblePart(full, frameOf(drawn ?? element));
        if (!box) continue;
        // Line boxes of neighboring lines overlap, the letters don't.
        const spare = (box.bottom - box.top) / 4;
        items.push({ element, text, box: { ...box, top: box.top + spare, bottom: box.bottom - spare }, isLoose: frameOf(element).isLoose });
    }
    forOverlaps(items, (one, other) => {
        if (one.element === other.element) return;
        faults.texts.push(`${nameOf(one.element)} ${quote(one.text)} and ${nameOf(other.element)} ${quote(other.text)} lie over each other: ${span(one.box)}; ${span(other.box)}`);
    });
}

function check() {
    const faults = { clipped: [], wide: [], controls: [], texts: [] };
    const texts = pieces();
    findWide(faults);
    findClipped(texts, faults);
    findOverlappingControls(faults);
    findOverlappingTexts(texts, faults);
    return Object.values(faults).flatMap((each) => each.slice(0, MOST));
}

// Boards on canvases adapt to a new width in the next frames.
requestAnimationFrame(() => requestAnimationFrame(() => {
    try {
        done(check());
    } catch (error) {
        done([`the check of the layout failed: ${error.stack}`]);
    }
}));
