// `@specarena/engine/challenge-design/BaseChallenge`: the common base of most challenges: players, methods, scores, the end.

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

  // Hooks to override. Each may be async.

  /** Handles a player who has joined at the seat `playerIndex`, from 0. */
  async onPlayerJoin(_playerId, _playerIndex) {}

  /** Starts the game after all seats are taken. */
  async onGameStart() {}

  /** Returns the state to keep between two calls, as a JSON value. */
  serialize() {
    return { gameState: this.gameState, state: this.state };
  }

  /** Restores the output of `serialize`. */
  restore(challenge) {
    this.gameState = challenge.gameState;
    this.state = challenge.state;
  }

  // Methods for the challenge.

  /** Registers `handler(message, playerIndex)` for the method `type`. */
  handle(type, handler) {
    this.handlers.set(type, handler);
  }

  /** Sends a message to one player. */
  async send(content, to) {
    await this.messaging.sendChallengeMessage(this.challengeId, "operator", content, to);
  }

  /** Sends a message to everyone. */
  async broadcast(content) {
    await this.messaging.sendChallengeMessage(this.challengeId, "operator", content);
  }

  /** Records that one player caused `type` to happen to another. */
  addAttribution(fromIndex, toIndex, type) {
    const [from, to] = [this.state.players[fromIndex], this.state.players[toIndex]];
    if (from === undefined || to === undefined) {
      throw new RangeError(`addAttribution: player ${fromIndex} or ${toIndex} of ${type} doesn't exist; indexes start at 0`);
    }
    this.state.attributions ??= [];
    this.state.attributions.push({ from, to, type });
  }

  /** Ends the game with the current scores. The arena announces the end. */
  async endGame() {
    this.state.status = "ended";
    this.state.completedAt = now();
  }

  /** Requests a call of `onDeadline` after this time in milliseconds. A new request replaces an earlier one. */
  setDeadline(ms) {
    setDeadline(ms);
  }

  /** Cancels the deadline. */
  clearDeadline() {
    clearDeadline();
  }

  // The interface that the arena calls.

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
