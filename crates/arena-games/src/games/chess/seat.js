// The controls of chess: transparent buttons over the squares of the board, from which pieces are also dragged, a choice of
// the piece for promotions, and sounds. As buttons, the squares work with the keyboard and screen readers.
import { figure, placed, readMoves, squares } from "../boards/chess.js";
import { make } from "../boards/seats.js";
import { button, onChoice, shape, wrap } from "./parts.js";

/** The pieces for promotions, by their letters in UCI notation. */
const PROMOTIONS = { q: "Queen", r: "Rook", b: "Bishop", n: "Knight" };
/** The pixels by which a pointer may slip during a click. */
const SLIP = 6;
/** The place in the browser's storage that remembers whether moves sound. */
const SOUND = "chess sound";

/** Fills the panel. */
export function start(panel, game) {
  const sound = make("input");
  // People who want less motion probably want less noise too.
  const usual = matchMedia("(prefers-reduced-motion: reduce)").matches ? "off" : "on";
  Object.assign(sound, { type: "checkbox", checked: (remembered() ?? usual) === "on" });
  sound.addEventListener("change", () => remembered(sound.checked ? "on" : "off"));
  const claim = button("Claim a draw", () => game.isAsked && game.act("claim_draw", ""));
  const about = make("p", "soft small", "A claim holds if the position occurs for the third time, or after 50 moves without a capture or a pawn move.");
  const draw = wrap("details", "", make("summary", "", "Claim a draw"), about, claim);
  panel.append(wrap("div", "row", wrap("label", "check", sound, "Sound"), draw));

  const offer = offerMoves(async (legal, isWhite) => {
    const move = legal.length === 1 ? legal[0] : await choosePromotion(legal, isWhite);
    return move ? game.act("move", move) : false;
  });
  game.onDrawn = (picture, state, options) => offer(picture, state, options, game.isAsked);

  const play = tones();
  let heard = game.states.length;
  return () => {
    claim.disabled = !game.isAsked;
    const news = readMoves(game.states.slice(-2));
    if (game.states.length > heard && news.length && sound.checked) play(news.at(-1).text);
    heard = game.states.length;
  };
}

/** Returns the player's choice about sounds: `on`, `off` or null. Keeps a new choice, if the browser has a storage. */
function remembered(choice = null) {
  try {
    if (choice) localStorage.setItem(SOUND, choice);
    return localStorage.getItem(SOUND);
  } catch {
    return choice;
  }
}

/** Returns a function that plays the tone of a move. Browsers allow tones only after the first click or key. */
function tones() {
  let audio;
  const wake = () => {
    if (navigator.userActivation?.isActive) audio ??= new AudioContext();
  };
  for (const kind of ["pointerup", "keydown"]) addEventListener(kind, wake);
  return (move) => {
    if (!audio) return;
    const pitches = [move.includes("x") ? 220 : 330, ...(/[+#]/.test(move) ? [440] : [])];
    pitches.forEach((pitch, at) => {
      const [tone, volume, begin] = [audio.createOscillator(), audio.createGain(), audio.currentTime + at / 8];
      [tone.type, tone.frequency.value] = ["triangle", pitch];
      volume.gain.setValueAtTime(0.12, begin);
      volume.gain.exponentialRampToValueAtTime(0.001, begin + 0.15);
      tone.connect(volume).connect(audio.destination);
      tone.start(begin);
      tone.stop(begin + 0.15);
    });
  };
}

/** Asks for the piece of a promotion. Returns the move, or null if the player cancels. */
function choosePromotion(legal, isWhite) {
  const dialog = make("dialog", "promotion");
  const title = make("h2", "", "Promote the pawn to");
  title.id = "promotion-title";
  dialog.setAttribute("aria-labelledby", title.id);
  const choices = legal.map((move) => {
    const piece = move.at(-1);
    const choice = button(PROMOTIONS[piece] ?? move, () => dialog.close(move));
    choice.prepend(figure(isWhite ? piece.toUpperCase() : piece));
    choice.dataset.piece = piece;
    return choice;
  });
  dialog.append(title, wrap("p", "row", ...choices), button("Cancel", () => dialog.close(""), "btn"));
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue || null);
    });
    dialog.showModal();
  });
}

/**
 * Returns a function that puts buttons for the player's legal moves over a board. `move` is called with the legal moves
 * between the chosen squares, which differ in the promotion only, and true for White; its promise holds true if the
 * move is made.
 */
function offerMoves(move) {
  /** The last call of `show`, and its legal moves. */
  let [shown, legal] = [null, []];
  /** The square of the selected piece. */
  let from = null;
  /** True while the pointer holds a piece, and while a move is on its way. */
  let [isHeld, isSent] = [false, false];
  /** The moves for which the buttons were made, and the drawing below the buttons. */
  let [offered, drawing] = [null, null];

  const begins = (start) => legal.some((each) => each.startsWith(start));

  function show(picture, state, options, isAsked) {
    // A finger that holds a piece doesn't scroll the page.
    if (!shown) picture.addEventListener("touchstart", (event) => isHeld && event.preventDefault(), { passive: false });
    shown = { picture, state, options, isAsked };
    // Screen readers skip buttons inside `role="img"`.
    picture.setAttribute("role", "group");
    const isMine = isAsked && !isSent && options.sides[options.seat] === (state.turn ? "WHITE" : "BLACK");
    legal = isMine && Array.isArray(state.legal_moves) ? state.legal_moves : [];
    if (!begins(from ?? "-")) from = null;
    const wanted = JSON.stringify([legal, from]);
    if (wanted === offered && drawing === picture.firstElementChild) return;
    [offered, drawing] = [wanted, picture.firstElementChild];
    for (const old of picture.querySelectorAll(".square")) old.remove();
    const made = [];
    for (const { column, row, name, holds } of squares(state, options)) {
      const isEnd = from !== null && begins(from + name);
      if (!isEnd && !begins(name)) continue;
      const square = shape("g", { class: `square${name === from ? " from" : ""}`, "data-square": name });
      square.setAttribute("aria-label", `${name}, ${holds}${isEnd ? ", legal target" : ""}`);
      if (!isEnd) square.setAttribute("aria-pressed", String(name === from));
      square.append(shape("rect", { x: column, y: row, width: 1, height: 1 }));
      const mark = holds === "empty" ? { r: 0.16 } : { r: 0.43, class: "takes" };
      if (isEnd) square.append(shape("circle", { cx: column + 0.5, cy: row + 0.5, ...mark }));
      // The mouse and fingers choose by `hold`; only the clicks of screen readers have no detail.
      onChoice(square, (event) => event?.detail || choose(name));
      square.addEventListener("pointerdown", (event) => hold(event, name));
      made.push({ square, isEnd, name });
    }
    // The keyboard reaches the selected piece first, then its targets, then the other pieces.
    const rank = ({ isEnd, name }) => (name === from ? 0 : isEnd ? 1 : 2);
    made.sort((one, other) => rank(one) - rank(other));
    picture.append(...made.map(({ square }) => square));
  }

  function select(name) {
    from = name;
    show(shown.picture, shown.state, shown.options, shown.isAsked);
  }

  /** Moves the selected piece to a square, or selects another piece. */
  function choose(name) {
    const moves = from === null ? [] : legal.filter((each) => each.startsWith(from + name));
    if (moves.length) return send(from, name, moves);
    select(name === from ? null : name);
    shown.picture.querySelector(`[data-square="${name}"]`)?.focus();
  }

  /** Shows the move at once, and takes it back if it isn't made. */
  async function send(start, end, moves) {
    const taken = pieceAt(end);
    taken?.setAttribute("visibility", "hidden");
    put(pieceAt(start), end);
    isSent = true;
    select(null);
    const isMade = await move(moves, shown.state.turn);
    isSent = false;
    if (isMade) return;
    taken?.removeAttribute("visibility");
    put(pieceAt(start), start);
    select(null);
  }

  const pieceAt = (name) => shown.picture.querySelector(`[data-at=${name}]`);

  /** Puts a piece on a square, above all others. */
  function put(piece, name) {
    // A new drawing has pieces of its own.
    if (!piece?.isConnected) return;
    const { column, row } = squares(shown.state, shown.options).find((square) => square.name === name);
    piece.setAttribute("transform", placed(column, row));
    shown.picture.append(piece);
  }

  /** Follows a pointer that is pressed on a square: a short way is a click, a longer one drags the piece. */
  function hold(event, name) {
    if (!event.isPrimary || event.button !== 0) return;
    const { picture } = shown;
    const piece = begins(name) ? pieceAt(name) : null;
    let isDragged = false;
    const stop = new AbortController();
    const on = (kind, does) => addEventListener(kind, (next) => next.pointerId === event.pointerId && does(next), { signal: stop.signal });
    const release = () => {
      stop.abort();
      isHeld = false;
    };
    const isNear = ({ clientX, clientY }) => Math.hypot(clientX - event.clientX, clientY - event.clientY) < SLIP;
    /** Returns the place of the pointer, in squares from the upper left corner. */
    const place = ({ clientX, clientY }) => {
      const { left, top, width } = picture.getBoundingClientRect();
      return [(8 * (clientX - left)) / width, (8 * (clientY - top)) / width];
    };
    const under = (event) => {
      const [column, row] = place(event).map(Math.floor);
      return squares(shown.state, shown.options).find((square) => square.column === column && square.row === row)?.name;
    };
    // The pressed square is replaced during the drag.
    picture.setPointerCapture(event.pointerId);
    isHeld = piece !== null;
    on("pointermove", (moved) => {
      if (!piece?.isConnected || (!isDragged && isNear(moved))) return;
      if (!isDragged) {
        isDragged = true;
        select(name);
        picture.append(piece);
      }
      const [column, row] = place(moved);
      piece.setAttribute("transform", placed(column - 0.5, row - 0.5));
      const target = under(moved);
      for (const square of picture.querySelectorAll(".square")) square.classList.toggle("over", square.dataset.square === target);
    });
    on("pointerup", (end) => {
      release();
      const target = under(end);
      if (!isDragged) return (target === name || isNear(end)) && choose(name);
      if (from === name && target !== name && begins(name + target)) return choose(target);
      put(piece, name);
      select(from === name && target === name ? name : null);
    });
    on("pointercancel", () => {
      release();
      put(piece, name);
    });
  }

  return show;
}
