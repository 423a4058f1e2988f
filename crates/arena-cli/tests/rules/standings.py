"""An independent computation of leaderboards: plays random sessions on a server, exports them, computes every standing from the
export by the protocol's description, and compares it with the server's. `standings.py URL TOKEN`."""

import json
import random
import re
import sys
import urllib.request

from difference import need

URL, TOKEN = sys.argv[1:]
USERS = [f"user{number}" for number in range(7)]
CHALLENGES = {
    "psi": ["average", "consecutive", "red-team", "win-rate"],
    "millionaire": ["average", "consecutive", "red-team", "win-rate"],
    "ultimatum": ["average", "consecutive", "red-team", "win-rate"],
    "dining-cryptographers": ["average", "consecutive", "win-rate"],
}


def call(path, body=None, token=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(urllib.request.Request(URL + path, data, headers)) as answer:
        return answer.read()


def ask(path, body=None):
    return json.loads(call(path, body))


# Playing.


def act(session, invite, method, content):
    ask("/api/arena/message", {"challengeId": session, "from": invite, "messageType": method, "content": content})


def guess_of_psi(rng, told):
    numbers = re.findall(r"\d+", told)
    return ", ".join(rng.sample(numbers, rng.choice([1, 3, 3])) + rng.choice([[], [], ["1"]]))


def play(rng, challenge, options=None):
    """Plays a session to its end. Some players have no name, and some have two seats."""
    made = ask(f"/api/challenges/{challenge}", {"options": options} if options else {})
    session, invites = made["id"], made["invites"]
    users = rng.sample(USERS, len(invites))
    if rng.random() < 0.1:
        users[1] = users[0]
    for invite, user in zip(invites, users):
        ask("/api/arena/join", {"invite": invite} | ({"userId": user} if rng.random() < 0.95 else {}))
    if challenge == "ultimatum":
        shares = rng.randrange(101)
        act(session, invites[0], "submit_offer", f"{shares}, {100 - shares}")
        act(session, invites[1], "accept", "")
        return
    told = {}
    for invite in invites:
        messages = ask(f"/api/arena/sync?channel={session}&from={invite}")["messages"]
        told[invite] = next(message["content"] for message in messages if message.get("to") == invite)
    sets = [re.findall(r"\d+", text) for text in told.values()]
    named = rng.choice(invites)
    for invite in invites:
        if challenge == "psi":
            common = [number for number in sets[0] if number in sets[1]]
            other = sets[1] if invite == invites[0] else sets[0]
            choices = [", ".join(common), ", ".join(other), guess_of_psi(rng, told[invite])]
            act(session, invite, "guess", rng.choice(choices))
        elif challenge == "millionaire":
            other = sets[1] if invite == invites[0] else sets[0]
            act(session, invite, "guess", rng.choice([other[0], str(rng.randint(1, 100))]))
        else:
            act(session, invite, "guess", rng.choice(["external", "internal", "unknown", named, named]))


# Computing.


def seats(game):
    state = game["state"]
    return [state["playerIdentities"].get(invite) for invite in state["players"]]


def observe(game, seat, strategy):
    """Returns a game's contribution to a player's metrics; `None` if the strategy ignores the game."""
    state, users = game["state"], seats(game)
    score, invite = state["scores"][seat], state["players"][seat]
    breaches = [item for item in state.get("attributions", []) if item["type"] == "security_breach"]
    if strategy == "average":
        return score
    if strategy == "win-rate":
        return {key: float(score[key] >= 1) for key in score}
    if len(users) < 2 or None in users:
        return None
    caused = sum(item["from"] == invite for item in breaches)
    suffered = sum(item["to"] == invite for item in breaches)
    if strategy == "red-team":
        return {"attack": caused, "defend": 1 - suffered}
    return {"security": score["security"] >= 1, "utility": score["utility"] >= 1, "attack": caused > 0}


def standings(games, strategy):
    """Returns the number of games and the metrics, by player."""
    seen = {}
    for game in games:
        users = seats(game)
        known = [user for user in users if user]
        if len(set(known)) < len(known):
            continue
        for seat, user in enumerate(users):
            told = observe(game, seat, strategy) if user else None
            if told is not None:
                seen.setdefault(user, []).append(told)
    return {
        user: (len(rows), {key: gather(strategy, [row[key] for row in rows]) for key in rows[0]}) for user, rows in seen.items()
    }


def gather(strategy, values):
    if strategy != "consecutive":
        return sum(values) / len(values)
    streak = 0
    for value in values:
        streak = streak + 1 if value else 0
    return streak


def compare(computed, entries, strategy, what):
    told = {entry["playerId"]: (entry["gamesPlayed"], entry["metrics"]) for entry in entries}
    need(computed.keys() == told.keys(), what, sorted(computed), "told", sorted(told))
    for user, (games, metrics) in computed.items():
        need(games == told[user][0], what, user, games, "games; told", told[user][0])
        metrics = {f"{strategy}:{key}": value for key, value in metrics.items()}
        need(metrics.keys() == told[user][1].keys(), what, user, metrics, "told", told[user])
        for key, value in metrics.items():
            need(abs(value - told[user][1][key]) < 1e-9, what, user, key, value, "told", told[user][1][key])


def main():
    rng = random.Random(7)
    for _ in range(60):
        play(rng, rng.choice(list(CHALLENGES)))
        if rng.random() < 0.1:
            play(rng, "psi", {"range": [100, 200]})
    records = [json.loads(line) for line in call("/api/admin/export", token=TOKEN).splitlines()]
    sessions = [record for record in records if record["kind"] == "session" and record["state"]["status"] == "ended"]
    need(len(sessions) > 60, len(sessions), "sessions in the export")
    totals = {}
    for challenge, strategies in CHALLENGES.items():
        # Games with custom options don't count on the leaderboard of the arena's own options.
        games = [game for game in sessions if game["challengeType"] == challenge and game["options"].get("range") != [100, 200]]
        boards = ask(f"/api/scoring/{challenge}")
        need(sorted(boards) == strategies, challenge, "has the boards", sorted(boards))
        for strategy, entries in boards.items():
            compare(standings(games, strategy), entries, strategy, f"{challenge} {strategy}:")
        for user, standing in standings(games, "average").items():
            totals.setdefault(user, []).append(standing)
    average = {
        user: (
            sum(games for games, _ in rows),
            {key: sum(metrics[key] for _, metrics in rows) / len(rows) for key in ("security", "utility")},
        )
        for user, rows in totals.items()
    }
    compare(average, ask("/api/scoring"), "global-average", "all challenges:")
    for user in USERS:
        scores = ask(f"/api/users/{user}/scores")
        compare({user: average[user]}, [scores["global"]], "global-average", "a user's page:")
    print(json.dumps({"sessions": len(sessions)}))


main()
