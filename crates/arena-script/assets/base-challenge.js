// `@specarena/engine/challenge-design/BaseChallenge`: what most challenges have in common: players, methods, scores, the end.

import { ChallengeOperatorError } from "@specarena/engine/types";
import { messaging as arena, setDeadline, clearDeadline, now } from "arena:session";

export class BaseChallenge {
  constructor(challengeId, playerCount, gameState, messaging = arena) {
    this.challengeId = challengeId;
    this.playerCount = playerCount;
    this.gameState = gameState;
    this.messaging = messaging;
    this.handlers = new Map();
    this.state = {
      status: "open",
      scores: Array.from({ length: playerCount }, () => ({ security: 0, utility: 0 })),
      players: [],
      playerIdentities: {},
      attributions: [],
    };
  }

  // To be overridden. Each may be async.

  /** A player has taken the seat `playerIndex`, from 0. */
  async onPlayerJoin(_playerId, _playerIndex) {}

  /** All seats are taken. */
  async onGameStart() {}

  /** What has to be kept from one call to the next, as JSON can. */
  serialize() {
    return { gameState: this.gameState, state: this.state };
  }

  /** Takes up what `serialize` left. */
  restore(challenge) {
    this.gameState = challenge.gameState;
    this.state = challenge.state;
  }

  // For the challenge's use.

  /** Lets `handler(message, playerIndex)` answer the method `type`. */
  handle(type, handler) {
    this.handlers.set(type, handler);
  }

  /** Tells one player something. */
  async send(content, to) {
    await this.messaging.sendChallengeMessage(this.challengeId, "operator", content, to);
  }

  /** Tells everybody something. */
  async broadcast(content) {
    await this.messaging.sendChallengeMessage(this.challengeId, "operator", content);
  }

  /** Notes that one player caused `type` to happen to another. */
  addAttribution(fromIndex, toIndex, type) {
    const [from, to] = [this.state.players[fromIndex], this.state.players[toIndex]];
    if (from === undefined || to === undefined) {
      throw new RangeError(`there are no players ${fromIndex} and ${toIndex} to attribute ${type} to`);
    }
    this.state.attributions ??= [];
    this.state.attributions.push({ from, to, type });
  }

  /** Ends the game with the scores as they stand. The arena tells everybody. */
  async endGame() {
    this.state.status = "ended";
    this.state.completedAt = now();
  }

  /** Has `onDeadline` called so many milliseconds from now, instead of any earlier wish. */
  setDeadline(ms) {
    setDeadline(ms);
  }

  /** Takes the wish for a deadline back. */
  clearDeadline() {
    clearDeadline();
  }

  // What the arena calls.

  async join(invite, userId) {
    const { players, playerIdentities } = this.state;
    if (players.length >= this.playerCount) throw new ChallengeOperatorError("CHALLENGE_FULL", "All seats are taken.");
    players.push(invite);
    if (userId !== undefined) playerIdentities[invite] = userId;
    await this.onPlayerJoin(invite, players.length - 1);
    if (players.length === this.playerCount) {
      this.state.status = "active";
      await this.onGameStart();
    }
  }

  async message(message) {
    const playerIndex = this.state.players.indexOf(message.from);
    if (playerIndex < 0) throw new ChallengeOperatorError("PLAYER_NOT_FOUND", "Player not found.");
    const handler = this.handlers.get(message.type);
    if (handler === undefined) {
      throw new ChallengeOperatorError("UNKNOWN_METHOD", `Unknown challenge method: ${message.type}`);
    }
    await handler.call(this, message, playerIndex);
  }
}

export default BaseChallenge;
