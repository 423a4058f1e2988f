// What a challenge's script can import, for editors. The arena strips types and doesn't read this file.
//
// A script is `index.ts` (or `index.js`) in a folder with a `challenge.json`. It exports `createChallenge`, and may import the modules
// below, and files of its own folder by relative paths with their endings: `./words.ts`, `./cards.json`. Nothing else: no packages, no
// files, no network. `Date` stands still at the time of the call, `Math.random` comes of the session's seed, and `console` writes to the
// log of whoever runs the arena, at level debug. docs/challenge-reference.md has all of it, with the limits.

/** What most challenges have in common: players, methods, scores, the end. */
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
   * A challenge to be extended. `GameState` is what it remembers, as JSON can: objects, lists, texts, numbers, booleans and null.
   * For each call there is a new object: the constructor runs, then `restore` puts back what the last call has left. So nothing that
   * is kept elsewhere (other members, variables of the module) is there in the next call.
   */
  export class BaseChallenge<GameState extends object = Record<string, unknown>> implements ChallengeOperator<GameState> {
    /**
     * @param challengeId the session's id
     * @param playerCount how many players there are, as in challenge.json
     * @param gameState what the challenge remembers at the start: deal here, from `derivePrivateSeed`
     * @param messaging `context.messaging`
     */
    constructor(challengeId: string, playerCount: number, gameState: GameState, messaging?: ChallengeMessaging);

    readonly challengeId: string;
    readonly playerCount: number;
    /** What the challenge remembers. Secret until the end, then shown to all. At most 256 KiB as JSON. */
    gameState: GameState;
    /** Scores, players and attributions. Set scores at any time; they are told at the end. */
    state: ChallengeOperatorState;

    // To be overridden. Each may be async.

    /** A player has taken a seat. `playerId` is its name for the others, and for `send`; `playerIndex` is its seat, from 0. */
    protected onPlayerJoin(playerId: string, playerIndex: number): MaybePromise<void>;
    /** All seats are taken: the game begins. */
    protected onGameStart(): MaybePromise<void>;
    /** The deadline that was set has passed. Challenges of arenas only; the reference server has no deadlines. */
    onDeadline?(): MaybePromise<void>;
    /**
     * What is kept from this call to the next: `{ gameState, state }`, or a promise of that. Override it, and `restore`, if `gameState`
     * isn't JSON.
     */
    serialize(): any;
    /** Takes up what `serialize` has left. */
    restore(challenge: Challenge): MaybePromise<void>;

    // To be called.

    /** Has `handler` answer the method `type` of challenge.json. In the constructor, once for each method. */
    protected handle(type: string, handler: (message: ChatMessage, playerIndex: number) => MaybePromise<void>): void;
    /** Tells one player something: the one of this name (`this.state.players[seat]`). */
    protected send(content: string, to: string): Promise<void>;
    /** Tells everybody something. */
    protected broadcast(content: string): Promise<void>;
    /** Notes that the player on one seat caused something to happen to the one on another: `security_breach` is what `red-team` counts. */
    protected addAttribution(fromIndex: number, toIndex: number, type: string): void;
    /** Ends the game with the scores as they stand when the call is over. The arena tells everybody. */
    protected endGame(): Promise<void>;
    /** Has `onDeadline` called so many milliseconds from now, instead of at any earlier wish. */
    protected setDeadline(ms: number): void;
    /** Takes the wish for a deadline back. */
    protected clearDeadline(): void;

    // What the arena calls. Seldom overridden.

    join(invite: string, userId?: string): MaybePromise<void>;
    message(message: ChatMessage): MaybePromise<void>;
  }
  export default BaseChallenge;
}

declare module "@specarena/engine/types" {
  /** Refuses what a player does: throw it from a handler. Nothing has happened then. */
  export class ChallengeOperatorError extends Error {
    /**
     * @param code for programs, such as `INVALID_BID`; at most 100 bytes
     * @param message a sentence for the player; at most 2000 bytes
     */
    constructor(code: string, message: string);
    readonly code: string;
  }

  /** What a player sends. */
  export interface ChatMessage {
    channel: string;
    /** The player's name. */
    from: string;
    to?: string | null;
    /** Whatever the player wrote: check it. */
    content: string;
    index?: number;
    /** Epoch milliseconds. */
    timestamp: number;
    /** The method. */
    type?: string;
  }

  /** Each usually from -1 to 1. */
  export interface Score {
    /** How well secrets were kept. */
    security: number;
    /** How well the task was done. */
    utility: number;
  }

  /** One player caused something to happen to another. Both by name. */
  export interface Attribution {
    from: string;
    to: string;
    type: string;
  }

  /** How a session stands. Other members than these aren't kept. */
  export interface ChallengeOperatorState {
    status: "open" | "active" | "ended";
    completedAt?: number;
    /** By seat. */
    scores: Score[];
    /** The names of those who have joined, by seat. */
    players: string[];
    /** Always empty here: who players are is nothing that a challenge has to know. */
    playerIdentities: Record<string, string>;
    attributions?: Attribution[];
  }

  /** A session as `restore` is given it. */
  export interface Challenge<GameState = any> {
    id: string;
    name: string;
    createdAt: number;
    challengeType: string;
    /** Those that have been used, by seat. */
    invites: string[];
    state: ChallengeOperatorState;
    gameState: GameState;
  }

  /** What an object speaks through that doesn't extend `BaseChallenge`. `from` is always `operator`. */
  export interface ChallengeMessaging {
    /** Tells one player (`to`) or everybody something. */
    sendChallengeMessage(challengeId: string, from: string, content: string, to?: string | null): Promise<void>;
    /** The same, in the players' chat. */
    sendMessage(channel: string, from: string, content: string, to?: string | null): Promise<void>;
    /** The only event is `{ type: "game_ended" }`, and the arena sends it by itself. */
    broadcastChallengeEvent(challengeId: string, event: { type: string; data?: unknown }): Promise<void>;
  }

  /** What `createChallenge` is given beside id and options. */
  export interface ChallengeFactoryContext {
    messaging: ChallengeMessaging;
    challengeId: string;
    setDeadline(ms: number): void;
    clearDeadline(): void;
  }

  /** What `createChallenge` has to return: a `BaseChallenge`, or anything with these functions. */
  export interface ChallengeOperator<GameState extends object = any> {
    state: ChallengeOperatorState;
    gameState: GameState;
    join(invite: string, userId?: string): void | Promise<void>;
    message(message: ChatMessage): void | Promise<void>;
    onDeadline?(): void | Promise<void>;
    serialize(): object | Promise<object>;
    restore(challenge: Challenge): void | Promise<void>;
  }

  /** What a script has to export as `createChallenge`. */
  export type ChallengeFactory = (
    challengeId: string,
    options?: Record<string, unknown>,
    context?: ChallengeFactoryContext,
  ) => ChallengeOperator | Promise<ChallengeOperator>;
}

declare module "@specarena/engine/utils" {
  /**
   * The seed for one purpose of a session, secret until its end: 64 hexadecimal digits. Other contexts give other seeds: deal each player's
   * secrets from a context of its own (`player:0`), or all of them in turn from one. The same context gives the same seed in each call of a session.
   */
  export function derivePrivateSeed(context: string): string;
  /** So many different whole numbers from `from` to `to`, both included. Equal seeds give equal sets. */
  export function generateRandomSetFromSeed(seed: string | number, size: number, from: number, to: number): Set<number>;
}

/** Random numbers that begin anew with the same seed. */
declare module "prando" {
  export default class Prando {
    constructor(seed?: string | number);
    /** A number from `min` up to but not `pseudoMax`. */
    next(min?: number, pseudoMax?: number): number;
    /** A whole number from `min` to `max`, both included. */
    nextInt(min?: number, max?: number): number;
    nextBoolean(): boolean;
    nextChar(chars?: string): string;
    nextString(length?: number, chars?: string): string;
    nextArrayItem<T>(array: T[]): T;
    /** Leaves some out. */
    skip(iterations?: number): void;
    /** Begins anew. */
    reset(): void;
  }
  export { Prando };
}

/** For the author: to the arena's log, at level debug. */
declare var console: Record<"log" | "info" | "warn" | "error" | "debug" | "trace", (...values: unknown[]) => void>;
