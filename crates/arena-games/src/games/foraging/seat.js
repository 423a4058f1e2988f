// The controls of food_catcher and cherry_picker: orders for actors and bases, chosen on the map or in lists. An order
// stands until it is done. If the page gathers by itself, actors without an order take and leave food where they stand,
// and turns are sent until an actor needs an order.
import { placed, sizeOf } from "../boards/foraging.js";
import { counted, make, number } from "../boards/seats.js";
import { button, fit, say, shape, wrap } from "./parts.js";

/** The food with which a gathering actor goes home. */
const LOAD = 40;
/** The distance on the screen, in pixels, within which a click selects an entity. */
const REACH = 16;
/** The pause before a turn that the page sends by itself, in milliseconds, so that people can follow. */
const PAUSE = 300;

/** Fills the panel. */
export function start(panel, game) {
  /** The standing orders by actor, and the bases that make an actor in this turn. */
  const [orders, spawns] = [new Map(), new Set()];
  let [selected, planned, lastSeen, timer] = [null, [], null, 0];

  const hint = make("p", "soft small", "Click where the chosen actor should go.");
  const actors = Object.assign(make("ul", "orders"), { ariaLabel: "Your actors" });
  const bases = Object.assign(make("ul", "orders"), { ariaLabel: "Your bases" });
  const gather = button("Gather food", () => order({ kind: "gather", isHome: false }), "btn", "gather");
  const stay = button("Stay", () => order(null));
  const settle = button("Become a base", () => order({ kind: "settle" }));
  const targets = Object.assign(make("select"), { id: "target", ariaLabel: "Target" });
  const go = button("Go there", () => order(JSON.parse(targets.value)), "btn", "go");
  const choice = wrap("fieldset", "", make("legend", "hidden", "Order"), wrap("p", "row", gather, stay, settle), wrap("p", "row", targets, go));
  const send = button("Send orders", submit, "btn primary", "send-orders");
  const auto = Object.assign(make("input"), { type: "checkbox", id: "auto", checked: true });
  auto.addEventListener("change", () => (update(), goOn()));
  const summary = Object.assign(make("p", "soft small"), { id: "orders-summary" });
  const gathering = wrap("div", "beside-board gathering", hint, actors, bases, choice, wrap("p", "row", send, summary), wrap("label", "check", auto, " Gather and go on by itself"));
  panel.append(gathering);

  const config = (name, usual) => (Number.isFinite(game.config[name]) ? game.config[name] : usual);
  const all = (key) => placed(game.state?.[key]);
  const own = (key) => all(key).filter(({ owner_id }) => owner_id === game.ids[game.seat]);
  /** Returns true if the slider shows an earlier state. */
  const isPast = () => Number.isInteger(game.board.chosen);
  const byId = (things, id) => things.find((thing) => thing.id === id);
  const nearest = (things, place) => things.reduce((best, thing) => (!best || distance(thing.position, place) < distance(best.position, place) ? thing : best), null);
  const enemies = () => [...all("actors"), ...all("bases")].filter(({ owner_id }) => owner_id !== game.ids[game.seat]);

  function order(wanted) {
    if (!selected) return;
    if (wanted) orders.set(selected, wanted);
    else orders.delete(selected);
    update();
    goOn();
  }

  function submit() {
    clearTimeout(timer);
    if (game.isAsked) game.act("actions", JSON.stringify(planned.map(({ action }) => action)));
  }

  /** Sends the turn by itself after a pause, if there is something to do. */
  function goOn() {
    clearTimeout(timer);
    if (auto.checked && planned.length) timer = setTimeout(() => auto.checked && submit(), PAUSE);
  }

  /** Returns the action of an actor by its order, with a description; null if the order is done. */
  function plan(actor, wanted) {
    const at = actor.position;
    const id = { actor_id: actor.id };
    const walk = (target, text) => ({ action: { action: "move", ...id, target }, text });
    const isNear = (thing, name, usual) => distance(at, thing.position) <= config(name, usual);
    if (wanted.kind === "point") return distance(at, wanted.point) < 0.01 ? null : walk(wanted.point, `goes to ${place(wanted.point)}`);
    if (wanted.kind === "settle") {
      return actor.food < config("make_base_cost", 500) ? null : { action: { action: "make_base", ...id }, text: "becomes a base" };
    }
    if (wanted.kind === "food") {
      const food = byId(all("foods"), wanted.id);
      if (!food) return null;
      if (!isNear(food, "take_food_max_distance", 1)) return walk(food.position, `goes to the food at ${place(food.position)}`);
      return { action: { action: "take_food", ...id, food_id: food.id }, text: "takes food" };
    }
    if (wanted.kind === "base") {
      const base = byId(all("bases"), wanted.id);
      if (!base) return null;
      if (!isNear(base, "deposit_food_max_distance", 0.15)) return walk(base.position, `goes to the base at ${place(base.position)}`);
      if (actor.food > 0) return { action: { action: "deposit_food", ...id, base_id: base.id }, text: "leaves its food in the base" };
      const canHeal = base.owner_id === actor.owner_id && base.food > 0 && actor.health < actor.max_health;
      return canHeal ? { action: { action: "heal", ...id, base_id: base.id }, text: "is healed by the base" } : null;
    }
    if (wanted.kind === "enemy") {
      const enemy = byId(enemies(), wanted.id);
      if (!enemy) return null;
      if (!isNear(enemy, "attack_range", 5)) return walk(enemy.position, `goes to ${nameOf(enemy)}`);
      return { action: { action: "attack", ...id, target: enemy.id }, text: `attacks ${nameOf(enemy)}` };
    }
    // An actor that gathers fetches food until it has a load, and brings the load to the nearest base.
    if (actor.food >= LOAD) wanted.isHome = true;
    if (actor.food <= 0) wanted.isHome = false;
    const home = nearest(own("bases"), at);
    if (wanted.isHome && home) return plan(actor, { kind: "base", id: home.id });
    const isTaken = ({ id: food }) => [...orders].some(([other, { target }]) => other !== actor.id && target === food);
    const food = nearest(all("foods").filter((food) => !isTaken(food)), at);
    wanted.target = food?.id;
    return food && plan(actor, { kind: "food", id: food.id });
  }

  const nameOf = (thing) => `${game.names[game.ids.indexOf(thing.owner_id)] ?? "a player"}'s ${byId(all("bases"), thing.id) ? "base" : "actor"} at ${place(thing.position)}`;

  /** Returns the action of an actor that takes or leaves food where it stands; null if there is nothing to do. */
  function planHere(actor) {
    const near = (things, name, usual) => things.find(({ position }) => distance(actor.position, position) <= config(name, usual));
    const base = actor.food > 0 && near(own("bases"), "deposit_food_max_distance", 0.15);
    const food = actor.food < LOAD && near(all("foods"), "take_food_max_distance", 1);
    return base ? plan(actor, { kind: "base", id: base.id }) : food ? plan(actor, { kind: "food", id: food.id }) : null;
  }

  /** Drops finished orders, and computes the actions of this turn. Returns true if an actor has nothing to do any more. */
  function planAll() {
    const before = new Set(planned.map(({ id }) => id));
    let isIdle = false;
    planned = [];
    for (const id of orders.keys()) if (!byId(own("actors"), id)) orders.delete(id);
    for (const actor of own("actors")) {
      let next = orders.has(actor.id) ? plan(actor, orders.get(actor.id)) : null;
      if (!next) orders.delete(actor.id);
      if (!next && auto.checked) next = planHere(actor);
      if (next) planned.push({ id: actor.id, ...next });
      else isIdle ||= before.has(actor.id);
    }
    for (const id of [...spawns]) {
      const base = byId(own("bases"), id);
      if (base && base.food >= config("spawn_actor_cost", 100)) planned.push({ id, action: { action: "spawn", base_id: id }, text: "makes an actor" });
      else spawns.delete(id);
    }
    return isIdle;
  }

  /** Makes, updates and removes the rows of a list. */
  function rows(element, things, noun, fill) {
    const known = new Map([...element.children].map((row) => [row.dataset.id, row]));
    things.forEach((thing, at) => {
      let row = known.get(thing.id);
      known.delete(thing.id);
      if (!row) {
        row = wrap("li", "", button("", () => pressed(noun, row.dataset.id)), make("span", "small"));
        row.dataset.id = thing.id;
        element.append(row);
      }
      fill(row, thing, `${noun} ${at + 1}`);
    });
    for (const row of known.values()) row.remove();
  }

  function pressed(noun, id) {
    if (noun === "Actor") selected = id;
    else if (!spawns.delete(id)) spawns.add(id);
    update();
    if (noun === "Base") goOn();
  }

  function showTargets() {
    const actor = byId(own("actors"), selected);
    const at = actor?.position ?? [0, 0];
    const away = (thing) => `${number(distance(at, thing.position))} away`;
    const options = [
      ...all("foods").map((thing) => [thing, { kind: "food", id: thing.id }, `Food at ${place(thing.position)}: ${number(thing.quantity)}`]),
      ...own("bases").map((thing) => [thing, { kind: "base", id: thing.id }, `Your base at ${place(thing.position)}`]),
      ...enemies().map((thing) => [thing, { kind: "enemy", id: thing.id }, nameOf(thing)]),
    ].sort(([one], [other]) => distance(one.position, at) - distance(other.position, at));
    const chosen = targets.value;
    targets.replaceChildren(...options.map(([thing, value, text]) => new Option(`${text}, ${away(thing)}`, JSON.stringify(value))));
    if (options.some(([, value]) => JSON.stringify(value) === chosen)) targets.value = chosen;
    settle.hidden = !actor || actor.food < config("make_base_cost", 500);
    say(settle, `Become a base for ${number(config("make_base_cost", 500))} food`);
    choice.disabled = !actor;
  }

  /** Chooses an actor or a target by a click on the map. */
  function click(event) {
    const canvas = game.board.picture?.querySelector("canvas");
    if (!canvas || isPast()) return;
    const box = canvas.getBoundingClientRect();
    const unit = sizeOf(game.state, game.config)[0] / box.width;
    const point = [(event.clientX - box.left) * unit, (event.clientY - box.top) * unit];
    if (point[0] < 0 || point[1] < 0 || event.clientX > box.right || event.clientY > box.bottom) return;
    const hit = (things) => {
      const thing = nearest(things, point);
      return thing && distance(thing.position, point) <= REACH * unit ? thing : null;
    };
    const actor = hit(own("actors"));
    if (actor && actor.id !== selected) {
      selected = actor.id;
      return update();
    }
    const enemy = hit(enemies());
    const [food, base] = [hit(all("foods")), hit(own("bases"))];
    if (enemy) order({ kind: "enemy", id: enemy.id });
    else if (food) order({ kind: "food", id: food.id });
    else if (base) order({ kind: "base", id: base.id });
    else order({ kind: "point", point: point.map((value) => Math.round(value * 10) / 10) });
  }

  /** Draws the selected actor and the orders over the map. */
  function drawOrders() {
    const picture = game.board.picture;
    const canvas = picture?.querySelector("canvas");
    if (!canvas) return;
    let layer = picture.querySelector(":scope > svg.layer");
    if (!layer) {
      layer = shape("svg", { class: "layer", "aria-hidden": "true" });
      picture.classList.add("with-layer");
      picture.append(layer);
      picture.addEventListener("click", click);
    }
    const [width, height] = sizeOf(game.state, game.config);
    layer.setAttribute("viewBox", `0 0 ${width} ${height}`);
    Object.assign(layer.style, { left: `${canvas.offsetLeft}px`, top: `${canvas.offsetTop}px`, width: `${canvas.offsetWidth}px`, height: `${canvas.offsetHeight}px` });
    const unit = width / (canvas.offsetWidth || 320);
    const parts = [];
    if (!isPast()) {
      for (const { id, action } of planned) {
        const actor = byId(own("actors"), id);
        if (!actor || !action.target || !Array.isArray(action.target)) continue;
        const [[x1, y1], [x2, y2]] = [actor.position, action.target];
        parts.push(shape("line", { x1, y1, x2, y2, "stroke-width": 2 * unit }), shape("circle", { cx: x2, cy: y2, r: 4 * unit, "stroke-width": 2 * unit }));
      }
      const actor = byId(own("actors"), selected);
      if (actor) parts.push(shape("circle", { cx: actor.position[0], cy: actor.position[1], r: 12 * unit, class: "selected", "stroke-width": 2.5 * unit }));
    }
    layer.replaceChildren(...parts);
  }

  function update() {
    if (!game.state) return;
    if (!byId(own("actors"), selected)) selected = own("actors")[0]?.id ?? null;
    const isNew = lastSeen !== game.state;
    lastSeen = game.state;
    if (isNew) spawns.clear();
    const isIdle = planAll();
    rows(actors, own("actors"), "Actor", (row, actor, name) => {
      const [choose, text] = row.children;
      say(choose, name);
      choose.setAttribute("aria-pressed", String(actor.id === selected));
      const order = planned.find(({ id }) => id === actor.id)?.text ?? "stays";
      say(text, `${number(actor.food)} food, ${number(actor.health)} health: ${order}`);
    });
    rows(bases, own("bases"), "Base", (row, base, name) => {
      const [spawn, text] = row.children;
      const cost = config("spawn_actor_cost", 100);
      say(spawn, `Actor for ${number(cost)} food`);
      spawn.setAttribute("aria-pressed", String(spawns.has(base.id)));
      spawn.disabled = base.food < cost;
      say(text, `${name}: ${number(base.food)} food`);
    });
    if (isNew || targets.children.length === 0 || targets.dataset.actor !== selected) showTargets();
    targets.dataset.actor = selected ?? "";
    const epochs = config("n_epochs", 0);
    const left = epochs ? `Turn ${game.state.epoch ?? 1} of ${epochs}. ` : "";
    say(summary, left + (planned.length ? `${counted(planned.length, "order")}.` : ""));
    say(send, planned.length === 0 ? "Skip this turn" : "Send orders");
    send.setAttribute("aria-disabled", String(!game.isAsked));
    drawOrders();
    if (isNew && isIdle) clearTimeout(timer);
    else if (isNew) goOn();
  }

  game.onDrawn = () => (drawOrders(), fit(game, panel));
  return update;
}

/** Returns the distance between two points. */
function distance([x, y], [otherX, otherY]) {
  return Math.hypot(x - otherX, y - otherY);
}

/** Formats a point. */
function place([x, y]) {
  return `${Math.round(x)}, ${Math.round(y)}`;
}
