// The replay viewer: boards, seats, actions, problems and controls. The viewer reads only the shown parts of a replay.
import { boardOf } from "./boards.js";
import * as messages from "./boards/messages.js";
import { letter, list, make, number, seatClass, visible } from "./boards/seats.js";
import { chart } from "./chart.js";
import { controls } from "./controls.js";
import { actions, outcome, problems } from "./sentences.js";
import { DISQUALIFICATION, FAULT, REJECTION, Replay } from "./replay.js";

/** Default speed in epochs per second, and that of challenges, whose messages take longer to read. */
const [SPEED, TALK] = [10, 1];
/** Minimum milliseconds between updates of the address; browsers throttle faster ones. */
const ADDRESS_MS = 400;

const main = document.getElementById("viewer");
const at = (place) => new URL(main.dataset[place], document.baseURI).href;

/** Returns the states in a frame's line; undefined if no agent was asked. */
const statesOf = ({ worlds, world_state }) => worlds ?? world_state;

/** Returns true for the states of a challenge, which has no board, but messages. */
const hasMessages = (states) => Array.isArray([states].flat().find((world) => world && typeof world === "object")?.messages);

start().catch(fail);

async function start() {
  const replay = new Replay({ replay: at("replay"), index: at("index"), summary: at("summary") });
  // Summary and header load in parallel. The first frame is shown before the summary arrives.
  const prepared = replay.prepare();
  prepared.catch(() => {});
  const first = await replay.begin();
  const viewer = new Viewer(replay);
  if (first) await viewer.show(0, first);
  await prepared;
  await viewer.ready();
}

function fail(error) {
  main.append(make("p", "problem", `Cannot show this replay: ${error.message}`));
}

class Viewer {
  #replay;
  #parts;
  #controls;
  #moveLine = () => {};
  #seat;
  /** The current frame, its line, the requested frame, and true if a request is running. */
  #shown = -1;
  #line;
  /** The states of the current frame; those of a neighbor if no agent was asked. */
  #states;
  #wanted = 0;
  #isMoving = false;
  #addressTimer;

  constructor(replay) {
    this.#replay = replay;
    const { header } = replay;
    // The page may have other names than those that the agents report, such as a tournament's.
    const known = list(JSON.parse(main.closest("[data-names]")?.dataset.names ?? "[]"));
    header.agents.forEach((agent, seat) => known[seat] && Object.assign(agent, { name: known[seat], version: null }));
    this.names = header.agents.map((agent) => visible(agent.name));
    const parts = (this.#parts = {
      facts: make("p", "facts soft"),
      boards: make("div", "boards"),
      seats: make("table", "seats"),
      talk: make("div"),
      happened: make("div", "happened"),
      chart: make("section", "over-time"),
      status: make("p", "hidden"),
    });
    parts.status.setAttribute("role", "status");
    const boards = make("section", "stage");
    boards.setAttribute("aria-label", "Board");
    boards.append(parts.boards);
    const beside = make("section", "beside");
    beside.setAttribute("aria-label", "Agents and their actions");
    const scroll = make("div", "scroll");
    scroll.append(parts.seats);
    beside.append(scroll, parts.talk, parts.happened);
    this.#controls = controls({
      seats: this.names,
      speed: (boardOf(header.game) ?? { speed: TALK }).speed ?? SPEED,
      show: (frame) => this.want(frame),
      shown: () => Math.max(this.#shown, 0),
      wanted: () => this.#wanted,
      last: () => this.#replay.frames - 1,
      find: (direction) => this.#find(direction),
      look: (seat) => this.look(seat),
      rest: () => this.#announce(),
    });
    const playing = make("div", "playing");
    playing.append(boards, this.#controls.element, beside);
    main.replaceChildren(playing, parts.chart, parts.facts, parts.status);
    const redraw = () => this.#line && this.#draw();
    new ResizeObserver(redraw).observe(parts.boards);
    // A canvas's largest height follows the window's height, which the boards' size doesn't show.
    addEventListener("resize", redraw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  }

  /** Completes the page once the summary is loaded. */
  async ready() {
    const { header, summary } = this.#replay;
    // The neighbor of a first frame without states can be read now.
    if (this.#line && !this.#states) await this.show(0, this.#line);
    const end = summary.result ? outcome(summary.result.outcome, header, summary.sides) : `incomplete: ends after epoch ${summary.first_epoch + summary.frames - 1}, without a result`;
    this.#parts.facts.append(visible(`${header.game} · ${end} · seed `), make("code", "", String(header.seed)));
    this.#moveLine = chart(this.#parts.chart, summary, this.names, (frame) => this.want(frame));
    this.#controls.ready(summary);
    // Errors are ignored here, since reading a frame reports them.
    this.#replay.warm().catch(() => {});
    const wanted = new URLSearchParams(location.hash.slice(1));
    const [epoch, seat] = ["epoch", "seat"].map((name) => (/^\d+$/.test(wanted.get(name)) ? Number(wanted.get(name)) : undefined));
    if (seat < this.names.length) this.look(seat);
    if (this.#line) this.#draw();
    if (epoch !== undefined) this.want(this.#replay.frameOf(epoch));
    addEventListener("hashchange", () => {
      const epoch = /epoch=(\d+)/.exec(location.hash)?.[1];
      if (epoch) this.want(this.#replay.frameOf(Number(epoch)));
    });
  }

  /** Requests a frame. While a frame is loading, only the latest request is kept. */
  async want(frame) {
    this.#wanted = Math.min(Math.max(frame, 0), this.#replay.frames - 1);
    if (this.#isMoving) return;
    this.#isMoving = true;
    try {
      while (this.#wanted !== this.#shown) {
        const wanted = this.#wanted;
        const line = await this.#replay.frame(wanted, wanted < this.#shown ? -1 : 1);
        await this.show(wanted, line);
        if (this.#controls.isPlaying()) this.#replay.expect(wanted + this.#controls.ahead());
      }
      this.#parts.problem?.remove();
    } catch (error) {
      this.#controls.pause();
      this.#parts.problem?.remove();
      this.#parts.problem = make("p", "problem", `Cannot show ${this.#replay.nameOf(this.#wanted)}: ${error.message}`);
      this.#parts.boards.before(this.#parts.problem);
    } finally {
      this.#isMoving = false;
    }
  }

  async show(frame, line) {
    const beside = frame ? frame - 1 : 1;
    const isEmpty = !statesOf(line) && beside < this.#replay.frames;
    const states = statesOf(isEmpty ? await this.#replay.frame(beside) : line);
    const board = boardOf(this.#replay.header.game) ?? (hasMessages(states) ? messages : undefined);
    this.history = await this.#history(frame, board?.memory ?? 0);
    [this.#shown, this.#line, this.#states, this.board] = [frame, line, states, board];
    this.#draw();
    this.#controls.moved(frame, line);
    this.#moveLine(frame);
    performance.mark("arena:frame", { detail: frame });
    if (!this.#controls.isPlaying()) this.#announce();
  }

  /** Selects the view of a seat, or of all seats. */
  look(seat) {
    this.#seat = seat;
    this.#controls.looks(seat);
    if (this.#line) this.#draw();
    this.#remember();
  }

  /** Returns the states of at most `most` frames before this one. */
  async #history(frame, most) {
    const states = [];
    for (let before = Math.max(0, frame - most); before < frame; before++) {
      states.push(statesOf(await this.#replay.frame(before)));
    }
    return states;
  }

  async #find(direction) {
    if (!this.#replay.summary) return;
    try {
      const found = await this.#replay.find(this.#shown, direction, FAULT | REJECTION | DISQUALIFICATION);
      if (found === undefined) this.#parts.status.textContent = "No more problems";
      else this.want(found);
    } catch (error) {
      fail(error);
    }
  }

  #options(seat = this.#seat) {
    const { header, summary } = this.#replay;
    const ids = header.agents.map((agent) => agent.agent_id);
    const sides = summary?.sides ?? [];
    return { ids, names: this.names, sides, config: header.config, seat, history: this.history, talk: this.#parts.talk };
  }

  #draw() {
    const { boards } = this.#parts;
    const states = this.#states;
    if (!this.board) {
      boards.replaceChildren(make("p", "soft", states ? "This game has no board." : "No agent was asked in this epoch."));
    } else if (Array.isArray(states) && this.board !== messages) {
      const shown = states.map((_, seat) => seat).filter((seat) => this.#seat === undefined || seat === this.#seat);
      const figures = places(boards, shown.map((seat) => `world-${seat}`), "figure");
      shown.forEach((seat, place) => this.#drawWorld(figures[place], states[seat], seat));
    } else {
      const [place] = places(boards, ["all"], "div");
      this.board.draw(place, states, this.#options());
    }
    this.#drawSeats(states);
    this.#parts.happened.replaceChildren(...this.#happened());
  }

  #drawWorld(figure, world, seat) {
    const [caption, place] = places(figure, ["caption", "world"], "div");
    caption.className = `caption ${seatClass(seat)}`;
    const name = `World of ${letter(seat)} ${this.names[seat] ?? ""}`;
    caption.textContent = name;
    const isThere = world && typeof world === "object" && Object.keys(world).length > 0;
    if (isThere) this.board.draw(place, world, { ...this.#options(undefined), label: name });
    else place.replaceChildren(make("p", "soft", "No state was sent to this agent."));
  }

  #drawSeats(states) {
    const { summary } = this.#replay;
    const isEnd = Boolean(this.#line.result);
    const rows = this.names.map((name, seat) => {
      const state = Array.isArray(states) ? states[seat] : states;
      const note = this.board?.note(state, seat, this.#options()) ?? { score: undefined, words: "" };
      const out = list(summary?.disqualified).find((out) => out.seat === seat && out.frame <= this.#shown);
      const score = isEnd ? this.#line.result.scores?.[seat] : note.score;
      const bank = this.#line.remaining_overage_ms?.[seat];
      const row = make("tr", `${seatClass(seat)}${this.#seat === seat ? " chosen" : ""}`);
      const head = make("th");
      head.scope = "row";
      const version = this.#replay.header.agents[seat].version;
      head.append(make("span", "letter", letter(seat)), " ", make("span", "name", name));
      if (version) head.append(make("span", "soft", ` ${version}`));
      const words = make("td", "words", note.words);
      if (isEnd) words.append(`${note.words ? ", " : ""}rank ${this.#line.result.ranks?.[seat] ?? "–"}`);
      if (out) words.append(" ", make("span", "alarm", `disqualified: ${out.verdict}`));
      row.append(
        head,
        make("td", "number", score === undefined || score === null ? "–" : number(score)),
        make("td", "number", Number.isFinite(bank) ? `${(bank / 1000).toFixed(1)} s` : "–"),
        words,
      );
      return row;
    });
    const head = make("tr");
    for (const [text, classes] of [["Agent"], ["Score", "number"], ["Time bank", "number"], ["State"]]) {
      const cell = make("th", classes, text);
      cell.scope = "col";
      head.append(cell);
    }
    const [thead, tbody] = [make("thead"), make("tbody")];
    thead.append(head);
    tbody.append(...rows);
    this.#parts.seats.replaceChildren(thead, tbody);
  }

  #happened() {
    const wrong = problems(this.#line, this.names);
    const done = actions(this.#line, this.names);
    const parts = [];
    if (this.#line.result) parts.push(make("p", "", outcome(this.#line.result.outcome, this.#replay.header, this.#replay.summary?.sides)));
    for (const [title, sentences, classes] of [["Problems", wrong, "wrong"], ["Actions", done, "done"]]) {
      const chosen = sentences.filter(({ seat }) => this.#seat === undefined || seat === this.#seat);
      if (chosen.length === 0) continue;
      const all = make("ul", classes);
      all.append(...chosen.map(({ seat, text }) => make("li", seatClass(seat), text)));
      parts.push(make("h2", "", title), all);
    }
    return parts;
  }

  /** Describes the frame to screen readers and updates the address. Called while playback is paused. */
  #announce() {
    const board = this.#parts.boards.querySelector("[role=img]")?.getAttribute("aria-label") ?? "";
    const wrong = problems(this.#line, this.names).map(({ text }) => text);
    this.#parts.status.textContent = [this.#controls.name(), ...wrong, board].join(". ");
    this.#remember();
  }

  #remember() {
    clearTimeout(this.#addressTimer);
    this.#addressTimer = setTimeout(() => {
      if (!this.#replay.summary || this.#controls.isPlaying()) return;
      const seat = this.#seat === undefined ? "" : `&seat=${this.#seat}`;
      const epoch = this.#shown + this.#replay.summary.first_epoch;
      history.replaceState(null, "", `#epoch=${epoch}${seat}`);
    }, ADDRESS_MS);
  }
}

/**
 * Returns an element's children by name. Creates missing children and removes all others, so that canvases persist
 * between frames.
 */
function places(element, names, tag) {
  const there = new Map([...element.children].map((child) => [child.dataset.place, child]));
  const wanted = names.map((name) => {
    const child = there.get(name) ?? make(tag);
    child.dataset.place = name;
    return child;
  });
  if (wanted.length !== element.children.length || wanted.some((child, at) => element.children[at] !== child)) {
    element.replaceChildren(...wanted);
  }
  return wanted;
}
