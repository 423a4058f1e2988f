// The controls of food_catcher and cherry_picker: orders for actors and bases, chosen on the map or in lists. An order
// stands until it is done, so that the next turn needs one click.
import { counted, list, make, number } from "../boards/seats.js";
import { button, say, shape, wrap } from "./parts.js";

/** The food with which a gathering actor goes home. */
const LOAD = 40;
/** The distance on the screen, in pixels, within which a click selects an entity. */
const REACH = 16;

/** Fills the panel. */
export function start(panel, game) {
  /** The standing orders by actor, and the bases that make an actor in this turn. */
  const [orders, spawns] = [new Map(), new Set()];
  let [selected, sent, planned, lastSeen] = [null, null, [], null];

  const hint = make("p", "soft small", "Select one of your actors, then choose its target on the map or in the list.");
  const actors = make("ul", "orders");
  const bases = make("ul", "orders");
  const gather = button("Gather food", () => order({ kind: "gather", isHome: false }));
  gather.id = "gather";
  const stay = button("Stay", () => order(null));
  const settle = button("Become a base", () => order({ kind: "settle" }));
  const targets = make("select");
  targets.id = "target";
  const label = make("label", "", "Target");
  label.htmlFor = targets.id;
  const go = button("Go there", () => order(JSON.parse(targets.value)));
  go.id = "go";
  const choice = wrap("fieldset", "", make("legend", "", "Order"), wrap("p", "row", gather, stay, settle), label, wrap("p", "row", targets, go));
  const send = button("Send orders", submit, "btn primary");
  send.id = "send-orders";
  const repeat = make("input");
  Object.assign(repeat, { type: "checkbox", id: "repeat" });
  const repeating = wrap("label", "check", repeat, " Repeat until an order is done");
  repeat.addEventListener("change", () => update());
  const summary = make("p", "soft small");
  summary.id = "orders-summary";
  panel.append(make("h2", "", "Your actors"), hint, actors, summary, wrap("p", "row", send, repeating), choice, make("h2", "", "Your bases"), bases);

  const config = (name, usual) => (Number.isFinite(game.config[name]) ? game.config[name] : usual);
  const all = (key) => list(game.state?.[key]).filter(({ position } = {}) => Number.isFinite(position?.[0]) && Number.isFinite(position?.[1]));
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
    sent = null;
    update();
  }

  function submit() {
    if (!game.isAsked) return;
    const actions = planned.map(({ action }) => action);
    sent = actions.length;
    game.act("actions", JSON.stringify(actions));
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

  /** Drops finished orders, and computes the actions of this turn. Returns true if an order was dropped. */
  function planAll() {
    let isDropped = false;
    planned = [];
    for (const id of [...orders.keys()]) {
      const actor = byId(own("actors"), id);
      const next = actor && plan(actor, orders.get(id));
      if (next) planned.push({ id, ...next });
      else isDropped = orders.delete(id);
    }
    for (const id of [...spawns]) {
      const base = byId(own("bases"), id);
      if (base && base.food >= config("spawn_actor_cost", 100)) planned.push({ id, action: { action: "spawn", base_id: id }, text: "makes an actor" });
      else spawns.delete(id);
    }
    return isDropped;
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
    if (noun === "Base") sent = null;
    update();
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
    targets.replaceChildren(...options.map(([thing, value, text]) => {
      const option = make("option", "", `${text}, ${away(thing)}`);
      option.value = JSON.stringify(value);
      return option;
    }));
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
    const unit = config("grid_width", 40) / box.width;
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
    const [width, height] = [config("grid_width", 40), config("grid_height", 40)];
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
    const isDropped = planAll();
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
      say(spawn, `New actor for ${number(cost)} food`);
      spawn.setAttribute("aria-pressed", String(spawns.has(base.id)));
      spawn.disabled = base.food < cost;
      say(text, `${name} at ${place(base.position)}: ${number(base.food)} food`);
    });
    if (isNew || targets.children.length === 0 || targets.dataset.actor !== selected) showTargets();
    targets.dataset.actor = selected ?? "";
    const epochs = config("n_epochs", 0);
    const left = epochs ? `Turn ${game.state.epoch ?? 1} of ${epochs}. ` : "";
    say(summary, left + (planned.length ? `${counted(planned.length, "order")}.` : "No orders: your actors stay."));
    say(send, planned.length === 0 ? "Skip this turn" : sent === null ? "Send orders" : "Same again");
    send.setAttribute("aria-disabled", String(!game.isAsked));
    if (isDropped) repeat.checked = false;
    drawOrders();
    if (game.isAsked && repeat.checked && planned.length && sent !== null && isNew) submit();
  }

  game.onDrawn = drawOrders;
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
