// A game of PSI, played with a client generated from /openapi.json by openapi-typescript and openapi-fetch. It is compiled with
// strict types, so every field used here must be in the description.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };

const [baseUrl] = process.argv.slice(2);
const arena = createClient<paths>({ baseUrl: baseUrl! });

/** Returns the answer; a refusal ends the program. */
async function told<T>(call: Promise<{ data?: T; error?: components["schemas"]["Error"] }>): Promise<T> {
  const { data, error } = await call;
  if (error) throw new Error(`${error.code}: ${error.error}`);
  return data!;
}

const numbers = (text: string): number[] => (text.match(/\d+/g) ?? []).map(Number);

const metadata = await told(arena.GET("/api/metadata/{name}", { params: { path: { name: "psi" } } }));
const session = await told(
  arena.POST("/api/challenges/{name}", {
    params: { path: { name: "psi" } },
    body: { options: { setSize: 10 } },
  }),
);

const sets: number[][] = [];
for (const [seat, invite] of session.invites.entries()) {
  const joined = await told(arena.POST("/api/arena/join", { body: { invite, userId: `ts-${seat}` } }));
  const size: number = joined.ChallengeInfo.options.find((option) => option.name === "setSize")!.default as number;
  if (joined.ChallengeID !== session.id || joined.ChallengeInfo.players !== metadata.players || size !== 10) {
    throw new Error(`told of another session: ${JSON.stringify(joined)}`);
  }
}
for (const invite of session.invites) {
  const query = { channel: session.id, from: invite, index: 1 };
  const { messages } = await told(arena.GET("/api/arena/sync", { params: { query } }));
  const secret = messages.find((message) => message.to === invite && message.content.startsWith("Your private set"));
  sets.push(numbers(secret!.content));
}
for (const from of session.invites) {
  const said = await told(arena.POST("/api/chat/send", { body: { channel: session.id, content: "hello", from } }));
  if (said.channel !== session.id || said.from !== from) throw new Error(`said by another: ${JSON.stringify(said)}`);
}
const common = sets[0]!.filter((number) => sets[1]!.includes(number));
for (const from of session.invites) {
  const body = { challengeId: session.id, messageType: "guess", content: common.join(", "), from };
  await told(arena.POST("/api/arena/message", { body }));
}

const page = await told(
  arena.GET("/api/challenges/{name}", { params: { path: { name: "psi" }, query: { status: "ended", limit: 1 } } }),
);
const { state }: components["schemas"]["Challenge"] = page.challenges[0]!;
const users = await told(arena.GET("/api/users"));
const board = await told(arena.GET("/api/scoring", { params: { query: { sort: "global-average:utility" } } }));
console.log(
  JSON.stringify({
    status: state.status,
    scores: state.scores,
    identities: Object.values(state.playerIdentities),
    users: users.map((user) => user.userId),
    board: board.map((entry) => [entry.playerId, entry.gamesPlayed, entry.metrics["global-average:utility"]]),
  }),
);

// A refusal has its codes in its type.
const { error } = await arena.GET("/api/users/{userId}", { params: { path: { userId: "nobody" } } });
const code: string | undefined = error?.code;
if (code !== "USER_NOT_FOUND") throw new Error(`refused otherwise: ${code}`);
