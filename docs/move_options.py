#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""move_options.py FILE...: moves options of default hooks in `training_options` to the members `saves`, `summaries` and `step_counter`.

Rewrites braces with designators, such as {.checkpoint_dir = "run", .save_checkpoint_steps = 100, .max_to_keep = 3}, to
{.checkpoint_dir = "run", .saves = {.save_steps = 100, .saver = {.max_to_keep = 3}}}, and assignments to members. Look at the result: braces that a
macro or a string contains are not understood.

>>> move('train(model, training_options{.checkpoint_dir = "run", .save_checkpoint_steps = 100, .max_to_keep = 3, .saver = {.sync = false}});')
'train(model, training_options{.checkpoint_dir = "run", .saves = {.save_steps = 100, .saver = {.max_to_keep = 3, .sync = false}}});'
>>> move('options.save_summaries_steps = 10; saver({.max_to_keep = 2});')
'options.summaries.save_steps = 10; saver({.max_to_keep = 2});'
>>> move('training_options how; how.saver.sync = false; how.max_to_keep = 2; other.saver.sync = false;')
'training_options how; how.saves.saver.sync = false; how.saves.saver.max_to_keep = 2; other.saver.sync = false;'
"""
import re
import sys

MOVED = {
    "save_checkpoint_secs": "saves.save_secs", "save_checkpoint_steps": "saves.save_steps",
    "save_checkpoint_overhead": "saves.save_overhead", "save_checkpoint_interval": "saves.save_interval",
    "saver": "saves.saver", "max_to_keep": "saves.saver.max_to_keep", "checkpoint_listeners": "saves.listeners",
    "save_summaries_steps": "summaries.save_steps", "save_summaries_secs": "summaries.save_secs",
    "save_summaries_at_end": "summaries.at_end", "check_summaries": "summaries.check_variables", "hparams": "summaries.hparams",
    "log_step_count_steps": "step_counter.every_n_steps", "log_every_secs": "step_counter.log_every_secs",
}
# Names that are also members of other structs: they are moved only in braces or variables that are known to be of training_options.
AMBIGUOUS = {"saver", "max_to_keep", "hparams", "log_every_secs"}
ONLY_HERE = {"master", "is_chief", "retry", "config", "max_wait_secs", "recovery_wait", "keep_initial_state", "on_unseekable", "on_other_data",
             "resume_after_stop", "queue_runners", "stop_grace_period_secs", "stop_token", "stop_on", "preemption_grace",
             "check_update_fence", "group"}
FIRST = ["name", "master", "is_chief", "checkpoint_dir", "summary_dir", "metrics"]
ORDER = ["save_secs", "save_steps", "save_overhead", "save_interval", "basename", "pad_step_number", "max_to_keep", "keep_every_n_hours", "pinned",
         "max_staged_bytes", "when_busy", "on_error", "shards", "sync", "file_system", "pool", "clock", "saver", "listeners", "every_n_steps",
         "log_every_secs"]
ORDER_SUMMARIES = ["save_steps", "save_secs", "at_end", "check_variables", "hparams"]


def code(text, at=0):
    """Yields the places and characters of `text` from `at` on, without those in strings, character literals and comments."""
    i = at
    while i < len(text):
        c = text[i]
        if c == '"' or (c == "'" and not (i and text[i - 1].isdigit())):
            i += 1
            while i < len(text) and text[i] != c:
                i += 2 if text[i] == "\\" else 1
        elif text.startswith("//", i):
            while i < len(text) and text[i] != "\n":
                i += 1
        else:
            yield i, c
        i += 1


def closing(text, at):
    """Returns the index of the brace that closes the one at `at`, or -1."""
    depth = 0
    for i, c in code(text, at):
        depth += (c in "{([") - (c in "})]")
        if depth == 0:
            return i if c == "}" else -1
    return -1


def items(body):
    """Splits the content of braces at its commas."""
    parts, depth, start = [], 0, 0
    for i, c in code(body):
        depth += (c in "{([") - (c in "})]")
        if c == "," and depth == 0:
            parts.append(body[start:i])
            start = i + 1
    parts.append(body[start:])
    return [part for part in parts if part.strip()]


def nested(pairs, order):
    """Returns {.a = 1, .b = {.c = 2}} for pairs of dotted names and values."""
    tree = {}
    for path, value in pairs:
        head, _, rest = path.partition(".")
        tree.setdefault(head, []).append((rest, value))
    made = []
    for head in sorted(tree, key=lambda one: order.index(one) if one in order else 99):
        deeper = [(rest, value) for rest, value in tree[head] if rest]
        whole = [value for rest, value in tree[head] if not rest]
        if deeper and whole:  # .saver = {...} and .max_to_keep: merged
            inner = whole[0].strip()
            if inner.startswith("{"):
                for part in items(inner[1:-1]):
                    found = re.match(r"\s*\.(\w+)\s*=?\s*(.*)\s*$", part, re.S)
                    deeper.append((found[1], found[2]))
                made.append(f".{head} = {nested(deeper, order)}")
            else:
                made.append(f".{head} = {inner} /* MERGE */, " + nested(deeper, order))
        elif deeper:
            made.append(f".{head} = {nested(deeper, order)}")
        else:
            value = whole[0].strip()
            made.append(f".{head} = {value}")
    return "{" + ", ".join(made) + "}"


def rewritten(body, is_known):
    """Returns the content of braces with its options moved, or None if it has none."""
    parts = items(body)
    named = []
    for part in parts:
        found = re.match(r"(\s*(?://[^\n]*\n\s*)*)\.(\w+)\s*(=?)\s*(.*)$", part, re.S)
        if not found:
            return None
        named.append((found[2], found[4].rstrip(), part))
    keys = {name for name, _, _ in named}
    is_training = bool(keys & (set(MOVED) - AMBIGUOUS)) or (is_known and not keys & {"save_steps", "save_secs", "every_n_steps", "keep", "to_keep"}) or bool(keys & ONLY_HERE)
    if not is_training or not keys & set(MOVED):
        return None
    groups = {"saves": [], "summaries": [], "step_counter": []}
    before, after = [], []
    for name, value, part in named:
        if name in MOVED:
            group, _, rest = MOVED[name].partition(".")
            groups[group].append((rest, value))
        elif name in groups:
            return None
        elif name in FIRST:
            before.append(part.strip())
        else:
            after.append(part.strip())
    made = before
    for group, pairs in groups.items():
        if pairs:
            made.append(f".{group} = " + nested(pairs, ORDER_SUMMARIES if group == "summaries" else ORDER))
    made += after
    tail = re.search(r"\s*$", body)[0] if body.rstrip().endswith(",") else ""
    return ", ".join(made) + ("," + tail if tail else "")


def move(text):
    i = len(text)
    while True:
        i = text.rfind("{", 0, i)
        if i < 0:
            break
        if not re.match(r"\{\s*(//[^\n]*\n\s*)*\.\w", text[i:i + 200]):
            continue
        end = closing(text, i)
        if end < 0:
            continue
        before = text[max(0, i - 90):i]
        is_known = bool(re.search(r"training_options(\s+\w+)?\s*(=\s*)?$", before)) or bool(
            re.search(r"monitored_training_session\(\s*(\w+,\s*)?(\w+(\.\w+)?|\*\w+),\s*$", before))
        body = rewritten(text[i + 1:end], is_known)
        if body is not None:
            text = text[:i + 1] + body + text[end:]
    for name, path in MOVED.items():
        if name not in AMBIGUOUS:
            text = re.sub(r"(?<=[\w\)\]])\.%s\b" % name, "." + path, text)
            text = re.sub(r"(?<=->)%s\b" % name, path, text)
    for variable in set(re.findall(r"\btraining_options[&\s]+(\w+)\s*[;={(,)]", text)):
        for name in AMBIGUOUS:
            text = re.sub(r"(?<![\w.>])%s\.%s\b" % (variable, name), f"{variable}.{MOVED[name]}", text)
    return text


if __name__ == "__main__":
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            old = file.read()
        new = move(old)
        if new != old:
            with open(path, "w", encoding="utf-8") as file:
                file.write(new)
            print(path)
