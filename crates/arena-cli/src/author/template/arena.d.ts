// Types of the modules that a script can import, for editors. The arena removes types and doesn't read this file.
//
// A scoring strategy is `index.ts` (or `index.js`) in a folder with a `scoring.json`. It exports a function `update`, see
// `ScoringStrategy` below and docs/scoring-strategies.md.
//
// A challenge's script is `index.ts` (or `index.js`) in a folder with a `challenge.json`. It exports `createChallenge`. It may import the modules
// below, and files of its own folder by relative paths with their endings: `./words.ts`, `./cards.json`. There are no packages, no
// files and no network. `Date` is the time of the call, `Math.random` is derived from the session's seed, and `console` writes to the
// arena's log, at level debug. docs/challenge-reference.md has all details and limits.

/** The base class of challenges: players, methods, scores, the end. */
declare module "@specarena/engine/challenge-design/BaseChallenge" {
  import type {
    Challenge,
    ChallengeMessaging,
    ChallengeOperator,
    ChallengeOperatorState,
    ChatMessage,
  } from "@specarena/engine/types";

  type MaybePromise<T> = T | Promise<T>;

  /**
   * The base class of a challenge. `GameState` is its state, as JSON: objects, lists, texts, numbers, booleans and null.
   * Each call has a new object: the constructor runs, then `restore` puts back the state of the last call. Other members of the
   * object, and variables of the module, are lost.
   */
  export class BaseChallenge<GameState extends object = Record<string, unknown>> implements ChallengeOperator<GameState> {
    /**
     * @param challengeId the session's id
     * @param playerCount the number of players, as in challenge.json
     * @param gameState the state at the start: deal here, with `derivePrivateSeed`
     * @param messaging `context.messaging`
     */
    constructor(challengeId: string, playerCount: number, gameState: GameState, messaging?: ChallengeMessaging);

    readonly challengeId: string;
    readonly playerCount: number;
    /** The state. Secret until the end, then public. At most 256 KiB as JSON. */
    gameState: GameState;
    /** Scores, players and attributions. Set scores at any time; they are published at the end. */
    state: ChallengeOperatorState;

    // Methods to override. Each may be async.

    /** A player took a seat. `playerId` is its name for the others, and for `send`; `playerIndex` is its seat, from 0. */
    protected onPlayerJoin(playerId: string, playerIndex: number): MaybePromise<void>;
    /** All seats are taken: the game begins. */
    protected onGameStart(): MaybePromise<void>;
    /** The deadline passed. An extension of this arena; the reference server has no deadlines. */
    onDeadline?(): MaybePromise<void>;
    /**
     * Returns the state for the next call: `{ gameState, state }`, or a promise of it. Override it, and `restore`, if `gameState`
     * isn't JSON.
     */
    serialize(): any;
    /** Restores the result of `serialize`. */
    restore(challenge: Challenge): MaybePromise<void>;

    // Methods to call.

    /** Registers the handler of the method `type` of challenge.json. Call it in the constructor, once for each method. */
    protected handle(type: string, handler: (message: ChatMessage, playerIndex: number) => MaybePromise<void>): void;
    /** Sends a message to the player of this name (`this.state.players[seat]`). */
    protected send(content: string, to: string): Promise<void>;
    /** Sends a message to all players. */
    protected broadcast(content: string): Promise<void>;
    /** Records that the player on one seat affected the one on another. `red-team` counts `security_breach`. */
    protected addAttribution(fromIndex: number, toIndex: number, type: string): void;
    /** Ends the game with the scores at the end of the call. The arena announces it. */
    protected endGame(): Promise<void>;
    /** Sets the deadline to this many milliseconds from now; it replaces an earlier one. `onDeadline` is called then. */
    protected setDeadline(ms: number): void;
    /** Removes the deadline. */
    protected clearDeadline(): void;

    // Methods that the arena calls. Rarely overridden.

    join(invite: string, userId?: string): MaybePromise<void>;
    message(message: ChatMessage): MaybePromise<void>;
  }
  export default BaseChallenge;
}

declare module "@specarena/engine/types" {
  /** Refuses an action: throw it from a handler. The state then stays unchanged. */
  export class ChallengeOperatorError extends Error {
    /**
     * @param code the code for programs, such as `INVALID_BID`; at most 100 bytes
     * @param message a sentence for the player; at most 2000 bytes
     */
    constructor(code: string, message: string);
    readonly code: string;
  }

  /** A message from a player. */
  export interface ChatMessage {
    channel: string;
    /** The player's name. */
    from: string;
    to?: string | null;
    /** Any text of the player: check it. */
    content: string;
    index?: number;
    /** Milliseconds since 1970. */
    timestamp: number;
    /** The method. */
    type?: string;
  }

  /** A player's scores, each usually from -1 to 1. */
  export interface Score {
    /** The score for keeping secrets. */
    security: number;
    /** The score for the task. */
    utility: number;
  }

  /** A record that one player affected another, both by name. */
  export interface Attribution {
    from: string;
    to: string;
    type: string;
  }

  /** The state of a session. Other members than these aren't kept. */
  export interface ChallengeOperatorState {
    status: "open" | "active" | "ended";
    completedAt?: number;
    /** Scores by seat. */
    scores: Score[];
    /** The names of the players who have joined, by seat. */
    players: string[];
    /** Always empty here: a challenge doesn't learn the players' identities. */
    playerIdentities: Record<string, string>;
    attributions?: Attribution[];
  }

  /** A session, as `restore` receives it. */
  export interface Challenge<GameState = any> {
    id: string;
    name: string;
    createdAt: number;
    challengeType: string;
    /** The used invites, by seat. */
    invites: string[];
    state: ChallengeOperatorState;
    gameState: GameState;
  }

  /** The messages of an object that doesn't extend `BaseChallenge`. `from` is always `operator`. */
  export interface ChallengeMessaging {
    /** Sends a message to one player (`to`) or to all. */
    sendChallengeMessage(challengeId: string, from: string, content: string, to?: string | null): Promise<void>;
    /** The same, in the players' chat. */
    sendMessage(channel: string, from: string, content: string, to?: string | null): Promise<void>;
    /** The only event is `{ type: "game_ended" }`, which the arena sends automatically. */
    broadcastChallengeEvent(challengeId: string, event: { type: string; data?: unknown }): Promise<void>;
  }

  /** The third argument of `createChallenge`. */
  export interface ChallengeFactoryContext {
    messaging: ChallengeMessaging;
    challengeId: string;
    setDeadline(ms: number): void;
    clearDeadline(): void;
  }

  /** The result of `createChallenge`: a `BaseChallenge`, or any object with these functions. */
  export interface ChallengeOperator<GameState extends object = any> {
    state: ChallengeOperatorState;
    gameState: GameState;
    join(invite: string, userId?: string): void | Promise<void>;
    message(message: ChatMessage): void | Promise<void>;
    onDeadline?(): void | Promise<void>;
    serialize(): object | Promise<object>;
    restore(challenge: Challenge): void | Promise<void>;
  }

  /** The result of an ended game, for scoring strategies. */
  export interface GameResult {
    /** The session's id. */
    gameId: string;
    challengeType: string;
    /** Milliseconds since 1970. */
    createdAt: number;
    completedAt: number;
    /** The final scores by seat. */
    scores: Score[];
    /** The players' invites by seat. */
    players: string[];
    /** The ids of the identified players, by invite. An anonymous player has none. */
    playerIdentities: Record<string, string>;
    /** The events between players, by invite. */
    attributions?: Attribution[];
  }

  /** A player on a leaderboard. */
  export interface ScoringEntry {
    playerId: string;
    gamesPlayed: number;
    /** A finite number for each metric of scoring.json. */
    metrics: Record<string, number>;
  }

  /** The data of one strategy on the board of the game. It may be awaited, but needn't be. */
  export interface ScoringStorageAdapter {
    /** Returns the entry of a player of the game, or `undefined` before its first. */
    get(playerId: string): ScoringEntry | undefined;
    /** Puts a player of the game on the board. */
    set(entry: ScoringEntry): void;
    /** Returns the strategy's own JSON: about a player of the game, or about all. */
    getState<T = any>(playerId?: string): T | undefined;
    /** Stores the strategy's own JSON: at most 16 KiB about a player, and 256 KiB about all. */
    setState(state: unknown, playerId?: string): void;

    // The same under the names of the reference server. The store ignores the first two arguments.

    getScoreEntry(challengeType: string, strategyName: string, playerId: string): Promise<ScoringEntry | undefined>;
    setScoreEntry(challengeType: string, strategyName: string, entry: ScoringEntry): Promise<void>;
    getStrategyState<T = any>(challengeType: string, strategyName: string, playerId: string): Promise<T | undefined>;
    setStrategyState(challengeType: string, strategyName: string, playerId: string, state: unknown): Promise<void>;
  }

  export interface MetricDescriptor {
    key: string;
    label: string;
  }

  /**
   * A scoring strategy. A script exports an object of this type, or just the function `update`. The arena takes the name and
   * the metrics from scoring.json. Variables of the module are lost between games: keep data in the store.
   */
  export interface ScoringStrategy {
    name?: string;
    metrics?: MetricDescriptor[];
    update(result: GameResult, store: ScoringStorageAdapter): void | Promise<void>;
  }

  /** The type of the exported function `createChallenge`. */
  export type ChallengeFactory = (
    challengeId: string,
    options?: Record<string, unknown>,
    context?: ChallengeFactoryContext,
  ) => ChallengeOperator | Promise<ChallengeOperator>;
}

declare module "@specarena/engine/utils" {
  /**
   * Returns the seed for one purpose of a session, secret until its end: 64 hexadecimal digits. Each context has its own seed, which is
   * the same in every call of the session. Deal each player's secrets from its own context (`player:0`), or all in turn from one.
   */
  export function derivePrivateSeed(context: string): string;
  /** Returns `size` different integers from `from` to `to`, both included. Equal seeds give equal sets. */
  export function generateRandomSetFromSeed(seed: string | number, size: number, from: number, to: number): Set<number>;
}

/** Random numbers; equal seeds give equal sequences. */
declare module "prando" {
  export default class Prando {
    constructor(seed?: string | number);
    /** Returns a number from `min` to `pseudoMax`, which is excluded. */
    next(min?: number, pseudoMax?: number): number;
    /** Returns an integer from `min` to `max`, both included. */
    nextInt(min?: number, max?: number): number;
    nextBoolean(): boolean;
    nextChar(chars?: string): string;
    nextString(length?: number, chars?: string): string;
    nextArrayItem<T>(array: T[]): T;
    /** Skips numbers. */
    skip(iterations?: number): void;
    /** Restarts the sequence. */
    reset(): void;
  }
  export { Prando };
}

/** Writes to the arena's log, at level debug. */
declare var console: Record<"log" | "info" | "warn" | "error" | "debug" | "trace", (...values: unknown[]) => void>;
