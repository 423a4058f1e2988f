// A client in the form of a page or bot for another arena with this protocol: it lists without a limit, shows the first eight
// characters of ids, reads identities by position, and receives events by `onmessage` only. It prints its results.

const [url] = process.argv.slice(2);

async function ask(path, body) {
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(url + path, options);
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

// As a browser's EventSource: named events don't reach onmessage; comments and ids are dropped.
async function listen(path, onmessage) {
  const answer = await fetch(url + path, { headers: { Accept: "text/event-stream" } });
  let rest = "";
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + piece).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
      if (data.length === 0 || lines.some((line) => line.startsWith("event:"))) continue;
      if (onmessage({ data: data.join("\n") }) === "close") return;
    }
  }
}

const numbers = (text) => text.match(/\d+/g).map(Number);

// One player finds the common numbers, the other guesses a number of neither set. The order changes from game to game.
async function play(game) {
  const { id, invites } = await ask("/api/challenges/psi", {});
  const users = game % 2 ? [`winner-${game}`, `loser-${game}`] : [`loser-${game}`, `winner-${game}`];
  const heard = [];
  const ended = listen(`/api/chat/ws/challenge_${id}`, ({ data }) => {
    const event = JSON.parse(data);
    heard.push(event.type);
    if (event.type !== "game_ended") return undefined;
    heard.push(event.data);
    return "close";
  });
  const sets = [];
  for (const [seat, invite] of invites.entries()) await ask("/api/arena/join", { invite, userId: users[seat] });
  for (const invite of invites) {
    const { messages } = await ask(`/api/arena/sync?channel=${id}&from=${invite}&index=0`);
    sets.push(numbers(messages.find((message) => message.content.startsWith("Your private set")).content));
  }
  const common = sets[0].filter((number) => sets[1].includes(number));
  for (const [seat, from] of invites.entries()) {
    const content = users[seat].startsWith("winner") ? common.join(", ") : "1";
    await ask("/api/arena/message", { challengeId: id, from, messageType: "guess", content });
  }
  await ended;
  return { id, invites, heard };
}

// Names and scores, as in a table.
const table = (state) => Object.values(state.playerIdentities).map((user, seat) => [user, state.scores[seat].utility]);

const games = [];
for (let game = 0; game < 20; game += 1) games.push(await play(game));
const ids = games.map(({ id }) => id.slice(0, 8));
const invites = games.flatMap((game) => game.invites.map((invite) => invite.slice(4, 12)));
const { challenges } = await ask("/api/challenges?limit=100");
for (let user = 40; user < 352; user += 1) await ask("/api/users", { userId: `user-${user}`, username: `User ${user}` });
const psi = await ask("/api/scoring/psi");

console.log(
  JSON.stringify({
    ids: new Set(ids).size,
    invites: new Set(invites).size,
    listed: new Set(challenges.map(({ id }) => id.slice(0, 8))).size,
    wrongInList: challenges.flatMap(({ state }) => table(state)).filter(([user, utility]) => user.startsWith("winner") !== (utility === 1)),
    wrongInEvents: games.flatMap(({ heard }) => table(heard.at(-1))).filter(([user, utility]) => user.startsWith("winner") !== (utility === 1)),
    events: [...new Set(games.flatMap(({ heard }) => heard.filter((type) => typeof type === "string")))].sort(),
    begins: games.every(({ heard }) => heard[0] === "initial"),
    users: (await ask("/api/users")).length,
    board: (await ask("/api/scoring")).length,
    boards: Object.fromEntries(Object.entries(psi).map(([strategy, entries]) => [strategy, entries.length])),
    first: Object.keys(psi)[0],
  }),
);
