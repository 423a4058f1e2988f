// The viewer's controls: buttons, slider, speed, view and keyboard. The controls work with the numbers of frames only.
import { letter, make, shape } from "./boards/seats.js";

const ICONS = {
  first: "M5 4h2v16H5zM19 4v16L8 12z",
  back: "M14 4v16L5 12zM16 4h2v16h-2z",
  play: "M6 4l14 8-14 8z",
  pause: "M6 4h4v16H6zM14 4h4v16h-4z",
  step: "M10 4l9 8-9 8zM6 4h2v16H6z",
  last: "M17 4h2v16h-2zM5 4l11 8-11 8z",
  before: "M13 4v16L4 12zM17 4h3v10h-3zM17 17h3v3h-3z",
  next: "M11 4l9 8-9 8zM4 4h3v10H4zM4 17h3v3H4z",
};
/** Speeds as multiples of the usual speed. */
const SPEEDS = [0.25, 0.5, 1, 2, 4, 16, 100];
/** Number of frames that an arrow key with Shift moves. */
const STRIDE = 10;
/** Read-ahead in seconds. */
const AHEAD_S = 0.5;

/**
 * Makes the controls. `on` has the callbacks `show(frame)`, `find(direction)` for problems, `look(seat)` for the view,
 * `rest()` when playback stops, and optionally `step(count)`, which goes to another position of the board. `shown()`, `wanted()` (which may still be loading) and `last()` return frame
 * numbers. `on.seats` holds the seats' names, `on.speed` the usual speed in frames per second, and `on.unit` the word
 * for a frame.
 */
export function controls(on) {
  const unit = on.unit ?? "Epoch";
  const one = unit.toLowerCase();
  let isPlaying = false;
  let speed = on.speed;
  let before;
  let position = 0;
  let firstEpoch = 1;
  let isReady = false;
  let title = "";

  const element = make("section", "controls");
  element.setAttribute("aria-label", "Controls");
  const slider = Object.assign(make("input"), { type: "range", min: 0, max: 0, value: 0, disabled: true });
  slider.setAttribute("aria-label", unit);
  const place = make("output", "place");
  const move = (frame) => {
    pause();
    on.show(Math.min(Math.max(frame, 0), on.last()));
  };
  const step = (count) => {
    if (!on.step) return move(on.wanted() + count);
    pause();
    on.step(count);
  };
  const buttons = {
    first: button("first", `First ${one} (Home)`, () => move(0)),
    before: button("before", "Previous problem (P)", () => jump(-1)),
    back: button("back", "Back (←)", () => step(-1)),
    play: button("play", "Play (Space)", () => toggle()),
    step: button("step", "Forward (→)", () => step(1)),
    next: button("next", "Next problem (N)", () => jump(1)),
    last: button("last", "End (End)", () => move(on.last())),
  };
  const rate = choice("Speed", SPEEDS.map((each) => [each, `${each}×`]), (value) => (speed = on.speed * value));
  rate.select.value = 1;
  const views = [["", "all agents"], ...on.seats.map((name, seat) => [seat, `${letter(seat)} ${name}`])];
  const view = choice("View", views, (value) => on.look(value === "" ? undefined : Number(value)));
  const goal = make("label", "", "Go to ");
  const number = Object.assign(make("input"), { type: "number", min: 0, step: 1, disabled: true });
  number.setAttribute("aria-label", `Go to ${one}`);
  goal.append(number);
  number.addEventListener("change", () => {
    if (number.value !== "") move(Number(number.value) - firstEpoch);
  });
  const row = make("div", "choices");
  row.append(...Object.values(buttons), rate.label, place, ...(on.seats.length ? [view.label] : []), goal);
  element.append(slider, row);
  slider.addEventListener("input", () => move(Number(slider.value)));
  document.addEventListener("keydown", key);
  addEventListener("visibilitychange", () => (before = undefined));

  function jump(direction) {
    pause();
    on.find(direction);
  }

  function toggle() {
    if (isPlaying) return pause();
    if (!isReady) return;
    isPlaying = true;
    // At the end, playback starts from the first frame.
    position = on.shown() >= on.last() ? 0 : on.shown();
    before = undefined;
    face();
    requestAnimationFrame(tick);
  }

  function pause() {
    if (!isPlaying) return;
    isPlaying = false;
    face();
    on.rest();
  }

  function tick(now) {
    if (!isPlaying) return;
    const passed = before === undefined ? 0 : (now - before) / 1000;
    before = now;
    // Playback waits for slow frames instead of skipping them.
    position = Math.min(position + passed * speed, Math.max(position, on.shown() + 1 + speed * 0.1), on.last());
    on.show(Math.floor(position));
    if (position >= on.last() && on.shown() >= on.last()) return pause();
    requestAnimationFrame(tick);
  }

  function face() {
    const [icon, title] = isPlaying ? ["pause", "Pause (Space)"] : ["play", "Play (Space)"];
    dress(buttons.play, icon, title);
  }

  function key(event) {
    const { target } = event;
    if (event.altKey || event.ctrlKey || event.metaKey || target.matches?.("select, input[type=number]")) return;
    if (event.key === " " && target.matches?.("button, a, summary")) return;
    const stride = event.shiftKey ? STRIDE : 1;
    const keys = {
      " ": toggle,
      ArrowLeft: () => step(-stride),
      ArrowRight: () => step(stride),
      Home: () => move(0),
      End: () => move(on.last()),
      n: () => jump(1),
      p: () => jump(-1),
    };
    const does = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }

  return {
    element,
    /** Returns true during playback. */
    isPlaying: () => isPlaying,
    pause,
    /** Returns the number of frames to read ahead. */
    ahead: () => Math.ceil(speed * AHEAD_S) + 1,
    /** Returns the label of the current frame. */
    name: () => title,
    /** Enables the controls once the summary is loaded. */
    ready(summary) {
      isReady = true;
      firstEpoch = summary.first_epoch;
      const lastEpoch = summary.first_epoch + summary.frames - 1 - (summary.result ? 1 : 0);
      slider.max = summary.frames - 1;
      Object.assign(number, { min: firstEpoch, max: lastEpoch, disabled: false });
      slider.disabled = false;
      slider.value = on.shown();
      const hasMarks = summary.marks.some((marks) => marks > 0);
      for (const [name, button] of Object.entries(buttons)) button.disabled = !hasMarks && ["before", "next"].includes(name);
      place.title = `${lastEpoch} ${one}s`;
      place.dataset.of = ` of ${lastEpoch}`;
      place.textContent = title + (title.startsWith(unit) ? place.dataset.of : "");
    },
    /** Updates the controls for a new frame. */
    moved(frame, line) {
      title = line.result ? `End, after ${line.result.epochs} epochs` : `${unit} ${line.epoch}`;
      slider.value = frame;
      slider.setAttribute("aria-valuetext", title);
      place.textContent = title + (line.result ? "" : (place.dataset.of ?? ""));
      // Doesn't overwrite a number that the user is typing.
      if (document.activeElement !== number) number.value = line.epoch ?? "";
    },
    /** Selects a view, after a change that the user didn't make with these controls. */
    looks(seat) {
      view.select.value = seat ?? "";
    },
  };

  function button(icon, title, click) {
    const button = Object.assign(make("button"), { type: "button", disabled: true });
    dress(button, icon, title);
    button.addEventListener("click", click);
    return button;
  }
}

function dress(button, icon, title) {
  const svg = shape("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" });
  svg.append(shape("path", { d: ICONS[icon] }));
  button.replaceChildren(svg);
  button.title = title;
  button.setAttribute("aria-label", title);
}

function choice(name, options, choose) {
  const label = make("label", "", `${name} `);
  const select = make("select");
  select.append(...options.map(([value, text]) => new Option(text, value)));
  select.addEventListener("change", () => choose(select.value === "" ? "" : Number(select.value)));
  label.append(select);
  return { label, select };
}
