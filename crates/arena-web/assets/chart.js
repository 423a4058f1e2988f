// The chart of scores over time, with marks for problems below the scores. The chart is drawn once; only the line at
// the current frame moves.
import { letter, make, number, seatClass, shape } from "./boards/seats.js";
import { DISQUALIFICATION, FAULT } from "./replay.js";

const [WIDTH, HEIGHT, MARKS] = [1000, 150, 14];

/**
 * Draws the chart of a summary into `element`. Returns a function that moves the line to a frame. `seek` is called with
 * a frame when the user selects it. Without scores and marks the element stays empty.
 */
export function chart(element, summary, names, seek) {
  const hasScores = summary.scores.some((scores) => scores.some(Number.isFinite));
  const hasMarks = summary.marks.some((marks) => marks > 0);
  element.replaceChildren();
  if (!hasScores && !hasMarks) return () => {};
  const last = Math.max(summary.frames - 1, 1);
  const x = (frame) => (frame / last) * WIDTH;
  const svg = shape("svg", { class: "chart", preserveAspectRatio: "none", role: "img" });
  const top = hasScores ? HEIGHT : 0;
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${top + (hasMarks ? MARKS : 0)}`);
  const finalScores = [];
  let scale;
  if (hasScores) {
    const lines = summary.scores.map((scores, seat) => withEnd(points(scores, summary.stretch), summary, seat));
    const values = lines.flat().map(([, score]) => score);
    const [low, high] = [Math.min(0, ...values), Math.max(1, ...values)];
    const y = (score) => HEIGHT - 4 - ((score - low) / (high - low)) * (HEIGHT - 8);
    svg.append(shape("line", { class: "zero", x1: 0, x2: WIDTH, y1: y(0), y2: y(0) }));
    lines.forEach((line, seat) => {
      const path = line.map(([frame, score], at) => `${at ? "L" : "M"}${x(frame).toFixed(1)} ${y(score).toFixed(1)}`);
      svg.append(shape("path", { class: `score ${seatClass(seat)}`, d: path.join("") }));
      const end = line.at(-1);
      if (end) finalScores.push(`${letter(seat)} ${names[seat]} ${number(end[1])}`);
    });
    scale = make("p", "scale soft");
    scale.append(make("span", "", number(high)), make("span", "", number(low)));
  }
  if (hasMarks) {
    summary.marks.forEach((marks, at) => {
      if (!marks) return;
      const kind = marks & DISQUALIFICATION ? "out" : marks & FAULT ? "fault" : "rejection";
      const begin = x(at * summary.stretch);
      const width = Math.max(2, x(summary.stretch) * 0.8);
      svg.append(shape("rect", { class: kind, x: Math.min(begin, WIDTH - width), y: top + 3, width, height: MARKS - 3 }));
    });
  }
  const now = shape("line", { class: "now", y1: 0, y2: top + MARKS });
  svg.append(now);
  const what = finalScores.length ? `Scores over time; final scores: ${finalScores.join(", ")}` : "Problems over time";
  svg.setAttribute("aria-label", what);
  const point = (event) => {
    const box = svg.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    seek(Math.round(share * (summary.frames - 1)));
  };
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    point(event);
  });
  svg.addEventListener("pointermove", (event) => event.buttons & 1 && point(event));
  const figure = make("figure", hasScores ? "scores" : "scores flat");
  if (scale) figure.append(scale);
  figure.append(svg);
  const words = hasScores ? "Scores over time." : "Problems over time.";
  const marked = hasMarks ? " Marks: rejections, faults, disqualifications." : "";
  figure.append(make("figcaption", "soft", words + marked));
  element.append(figure);
  return (frame) => {
    now.setAttribute("x1", x(frame));
    now.setAttribute("x2", x(frame));
  };
}

const points = (scores, stretch) => scores.map((score, at) => [at * stretch, score]).filter(([, score]) => Number.isFinite(score));

/** Adds the final score to a seat's line, except for disqualified seats, whose final score is a penalty. */
function withEnd(line, summary, seat) {
  const score = summary.result?.scores?.[seat];
  const isOut = summary.disqualified.some((out) => out.seat === seat);
  return Number.isFinite(score) && !isOut ? [...line, [summary.frames - 1, score]] : line;
}
