// One line changed in the store of several gateways, at a time: what that line is there for, and the tests that have to miss it. `npm run rig fleet-mutants`
// plays them.
import type { ChangedSource } from "../../rig/mutants/changed-source.ts";

export interface Mutant extends ChangedSource {
  /** Files of tests beside this one. */
  readonly by: readonly string[];
  /** Of these, the tests that have one of these words. */
  readonly named?: string | undefined;
}

const store = (file: string) => `plugins/stores/postgres/${file}.ts`;

const of = (
  file: string,
  by: readonly string[],
  changes: Readonly<Record<string, readonly [line: string, instead: string]>>,
  named?: string,
): Record<string, Mutant> =>
  Object.fromEntries(
    Object.entries(changes).map(([name, [line, instead]]) => [
      `${file}: ${name}`,
      { in: store(file), line, instead, by, named },
    ]),
  );

/** Named by their file, and by what the store does then. */
export const MUTANTS: Readonly<Record<string, Mutant>> = {
  // Budgets that all draw on.
  ...of("slicing", ["slices", "postgres-hot", "postgres-apart"], {
    "what a slice has spent is not added to its meter": [
      "SET level = m.level + p.spent, held",
      "SET level = m.level, held",
    ],
    "what is set aside is not held": [
      "held = m.held - p.spent + p.part, peak",
      "held = m.held - p.spent, peak",
    ],
    "a slice is all that is left": ["r.room / (2 * live)", "r.room"],
    "a budget is sliced to its very end": ["r.room < 4 * live * r.take OR ", ""],
    "what is spent is told again and again": [
      "SET amount = i.amount + excluded.amount, spent = 0",
      "SET amount = i.amount + excluded.amount",
    ],
    "what goes back is held still": [
      "SET held = m.held - g.held, level",
      "SET held = m.held, level",
    ],
    "what was spent of it goes back too": [
      "level = m.level + g.spent, peak = greatest(m.peak, m.level + g.spent)\n      FROM gone",
      "peak = m.peak\n      FROM gone",
    ],
    "a slice takes what it has not": [" AND i.amount >= greatest(x.need, x.run, 0)", ""],
    "what a call gives back is not": [
      "SET amount = i.amount - x.run, spent",
      "SET amount = i.amount, spent",
    ],
    "a call is not spent": ["spent = i.spent + x.used", "spent = i.spent"],
    "a recalled budget is sliced at once again": [
      "greatest(CASE WHEN r.recalled THEN 0\n          WHEN",
      "greatest(CASE WHEN",
    ],
  }),
  ...of("slices", ["slices", "postgres-hot", "postgres-apart"], {
    "a slice of a higher limit is spent": ["sum.max < own.of.max", "false"],
    "a call that does not fit is counted there": [
      "own.amount < sum.run || own.amount < (sum.need ?? 0n)",
      "false",
    ],
    "what is sent is there to be spent twice": ["own.amount -= taken(sum);", ";"],
    "a batch that failed was spent": [
      "own.amount += taken(sum) - (happened ? sum.run : 0n);",
      "own.amount += taken(sum) - sum.run;",
    ],
    "what others hold is room": ["held - spent - amount, 0", "-amount, 0"],
    "a slice that was spent apart is spent again": ["this.#spent ? undefined : ", ""],
    "a new connection believes the old slices": [
      "if (made !== this.#made && this.#made !== 0) await this.#read(ask, node);",
      "",
    ],
    "no one is asked for theirs": ["(await recall(ask, this.#of.schema, fresh)) > 0", "false"],
    "its own does not go back to who is refused": [
      '      return "own";',
      "      return undefined;",
    ],
    "what another one needs is kept": ["new Set([...needed.back, ...gone])", "new Set(gone)"],
    "a lowered limit is not seen": ["if (touched && touched.max < max) return true;", ""],
    "what it has spent is never told": ["    await this.#tell(ask, node);", ""],
    "what is crossed by it is not said": ["this.#of.crossed(crossedIn(rows));", ""],
    "an idle one keeps it": ["!this.#of.apart && (!touched || touched.calls < 1)", "false"],
  }),
  ...of("passing", ["postgres-hot"], {
    "what is sent is not counted": ['counted?.(said.how === "ok");', "counted?.(false);"],
  }),
  ...of("busy", ["slices", "postgres-hot"], {
    "rates are sliced": [
      "if (max === null || !isCalendar(kindOf(id).per)) continue;",
      "if (max === null) continue;",
    ],
    "a budget that nobody draws on is hot": [".filter(([, { calls }]) => calls >= LEAST)", ""],
  }),
  ...of("denials", ["postgres-flood"], {
    "nothing is remembered": ["last.many < FLOOD ||", "last.many > 0 ||"],
    "a limit that was raised is spent": ["last.most !== most || take", "take"],
    "less does not fit either": [" || take < last.take) continue;", ") continue;"],
    "a few are a flood": ["const FLOOD = 20;", "const FLOOD = 1;"],
    "a moment is a minute": ["const MOMENT_MS = 250;", "const MOMENT_MS = 60_000;"],
    "what has ended makes no room": [
      "if (unhold > 0n) this.#last.delete(id);",
      "void [id, unhold];",
    ],
    "nor in its own batch": [
      'if (c.do === "settle") this.#givenBack(mine.get(c.attempt)?.row.taken ?? []);',
      "",
    ],
    "a call that was let through is refused when it is told again": [
      'if (c.do !== "reserve" || mine.has(c.attempt)) continue;',
      'if (c.do !== "reserve") continue;',
    ],
  }),
  // While the database is away.
  ...of("apart", ["reuniting", "postgres-apart", "tape"], {
    "a budget without a slice is spent": [
      "if (part === undefined ||",
      "if (part === undefined) continue;\n        if (",
    ],
    "a slice that is spent lets nothing through but what takes nothing": [
      " || (here && here.level + here.held >= part)",
      "",
    ],
    "keys without a budget go on": ["return budgets > 0 ? parts : undefined;", "return parts;"],
    "it goes on for ever": [" || performance.now() - this.#since! > this.#of.forMs", ""],
    "what is on no disk has happened": [
      "await this.#tape()!.owe(facts);",
      "void this.#tape()!.owe(facts).catch(() => {});",
    ],
    "what could not be written stays taken": ["this.#book.undo();", ""],
    "it is not owed": ["if (facts.length > 0) this.#owed.push(facts);", ""],
    "a call that is told twice is two": ["if (this.#book.open.get(c.attempt)) return OK;", ""],
    "its end gives no room": [
      "if (this.#book.open.get(c.attempt)) this.#book.apply({ ...c, at: now(c.at) });",
      "",
    ],
    "a lost batch stays open": [
      'for (const c of sent) if (c.do === "reserve") this.#doubtful.add(c.attempt);',
      "",
    ],
    "rates are whole": [
      "let max = most > 0n && most < live ? 1n : most / live;",
      "let max = most;",
    ],
    "what was spent may be spent in the next": ["if (this.goesOn) this.#slices?.spent();", ""],
    "what is paid is owed still": ["await this.#inTurn(() => this.#tape()!.paid());", ""],
    "what is decided is decided beside the rest": [
      "this.#inTurn(() => this.#decide(batch, now));",
      "this.#decide(batch, now);",
    ],
    "the disk is cleared beside what it is to keep": [
      "this.#inTurn(() => this.#tape()!.paid())",
      "this.#tape()!.paid()",
    ],
    "what is being decided is forgotten": ["return this.#deciding;", "return undefined;"],
  }),
  ...of("apart", ["postgres-apart"], {
    "where it refuses what is new it says that there is room": [
      "return this.goesOn ? OK : this.away();",
      "return OK;",
    ],
    "where it refuses what is new it begins all the same": ["if (!this.#of ||", "if (this.#of &&"],
  }),
  ...of("writer", ["postgres-apart"], {
    "what ends where new calls are refused is on no disk": [
      "if (folder) this.#outage",
      "if (folder && away) this.#outage",
    ],
  }),
  ...of("writer", ["postgres-named"], {
    "what is lost is looked for with a sign of life alone": [
      "      if (this.#node.doubts) await this.#node.doubt(ask);\n",
      "",
    ],
    "one that is busy does not look": [
      "if (!quiet && !this.#slices && !this.#node.doubts) return;",
      "if (!quiet && !this.#slices) return;",
    ],
  }),
  ...of("tape", ["tape", "postgres-apart", "postgres-failover"], {
    "the ring is no file": ["await ring.file.write(line);", ""],
    "what is owed is no file": ["await file.write(`${toJson(batch)}\\n`);", ""],
    "the oldest file stays": ["await this.#disk.remove(name(this.#segment - SEGMENTS));", ""],
    "a ring is two files": ["const SEGMENTS = 3;", "const SEGMENTS = 1;"],
    "files are read as their names sort": [
      ".toSorted((a, b) => Number(a.slice(5)) - Number(b.slice(5)));",
      ".toSorted();",
    ],
    "it reads its own": ['if (of === "" || of === instance) continue;', 'if (of === "") continue;'],
    "a line that is cut short ends it": [
      "      return [];\n    }\n  });",
      "      throw new Error(line);\n    }\n  });",
    ],
    "nothing is left, and it stays": [
      "if (whole) await this.#disk.remove(",
      "if (!whole) await this.#disk.remove(",
    ],
    "each line is complained of": ["this.#broken = true;", ""],
  }),
  ...of("reuniting", ["reuniting", "postgres-failover"], {
    "a key that was revoked meanwhile is good for its first call": [
      "    await node.lives(ask);\n  }",
      "  }",
    ],
  }),
  ...of("reuniting", ["reuniting", "postgres-apart"], {
    "it goes on as one that is dead": ["if (!(await node.goesOn(ask, about))) {", "if (false) {"],
    "what is being decided meanwhile is not told": [
      "else if (outage.deciding) await outage.deciding;",
      "",
    ],
  }),
  ...of("retelling", ["postgres-apart", "postgres-failover", "tape"], {
    "what the database has is told again as missing": [
      "n > (known.get(epoch) ?? -1)",
      "n >= 0 && epoch >= 0",
    ],
    "what it owes is not told": [
      "const batches = [...missing.map(({ batch }) => batch), ...owed];",
      "const batches = missing.map(({ batch }) => batch);",
    ],
    "the ring is not told": [
      "const batches = [...missing.map(({ batch }) => batch), ...owed];",
      "const batches = [...owed];",
    ],
    "it lives on": ["    await leave(ask, s, epoch);", ""],
    "what it had set aside stays": ["  await give(ask, s, instance);", ""],
  }),
  // A database that was set back.
  ...of("ring", ["postgres-failover", "postgres-doubt", "ring"], {
    "what was refused is a fact": ["&& verdicts[i]?.ok !== false", ""],
    "nothing is kept": ["this.#told.push({ at, n, batch: facts });", ""],
    "it is kept for ever": ["oldest.at < at - KEPT_MS || this.#many > MOST;", "false;"],
    "the last batch is not told": [
      "told.n > n ? [told.batch] : []",
      "told.n > n + 1 ? [told.batch] : []",
    ],
    "what is forgotten is whole": ["const whole = n >= this.#forgotten;", "const whole = true;"],
    "a call that was let through is denied": [
      "if (denied.length > 0) await exactly(denied.map(asFact));",
      "",
    ],
    "one that cannot be keeps the others away": [
      'if (faultOf(error)?.kind !== "invalid") throw error;\n    for',
      "throw error;\n    for",
    ],
    "it is told, and owed still": [
      "    owed.shift();",
      "    owed.push(owed.shift()!);\n    if (owed.length > 0) return;",
    ],
  }),
  ...of("this-node", ["this-node", "postgres-failover", "postgres-doubt"], {
    "one that is taken for dead tries for ever": [
      "    await this.#know(ask);\n    if (this.lost ||",
      "    await this.catchUp(ask);\n    if (this.lost ||",
    ],
    "it ends before it has told all": [
      "    await this.catchUp(ask);\n    return this.lost ? fenced() : ask;",
      "    return ask;",
    ],
    "it is another one where a telling broke": ["        this.me = before;\n", ""],
    "a database that was set back is not seen": ["if (n >= before) return;", "return;"],
    "a batch that happened is told again": ["if (pending?.head.equals(head)) pending.done();", ""],
    "a new connection is the old one": ["this.known !== this.#line.made", "false"],
    "what is gone is not said": ["if (!whole) this.sight.hear(", "if (false) this.sight.hear("],
    "its disk is not asked": [
      'for (const left of await leftIn(folder(), own ? instance : "", disk)) {',
      "for (const left of [] as Awaited<ReturnType<typeof leftIn>>) {",
    ],
    "a node that is gone begins with nothing": [
      "if (this.lost) this.owed.push(...this.ring.after(-1).batches);",
      "",
    ],
    "what was told under another row is kept no longer": [
      "this.ring.begin();",
      "this.ring.after(-1);",
    ],
  }),
  ...of("heads", ["postgres-failover", "heads"], {
    "a node that is told of late is named at once": [
      "else if (!head.behind || head.behind.alive !== alive) head.behind = { alive };\n    else {",
      "else {",
    ],
    "a head that went back is believed": ["if (row && n >= head.n) {", "if (row) {"],
    "one that has told all is named": ["if (later) this.#seen.delete(epoch);\n    else if", "if"],
    "it is named again and again": ["    else {\n      this.#seen.delete(epoch);", "    else {"],
    "one more is missing than is": ["from: n + 1, to: head.n", "from: n, to: head.n"],
    "how far it came is forgotten": ["      head.n = n;\n", ""],
  }),
  // By whose clock, and how often.
  ...of(
    "passing",
    ["on-postgres"],
    {
      "rates count by the moments of commands": [
        'settings.clock === "command" ? (batch.find((c) => c.do !== "alive")?.at ?? null) : null;',
        '(batch.find((c) => c.do !== "alive")?.at ?? null);',
      ],
    },
    "an hour off",
  ),
  ...of("exact", ["postgres-once"], {
    "two gateways end a dead one's call": [
      "WHERE attempt = ANY ($1::text[]) ORDER BY attempt FOR UPDATE",
      "WHERE attempt = ANY ($1::text[]) ORDER BY attempt",
    ],
  }),
  // What is kept, and what goes.
  ...of("pruning", ["on-postgres", "postgres-keeping"], {
    "sums of days keep what is gone": ['${adding(s, "b.pos >= p_from AND b.pos < p_to", "-")}', ""],
    "sums of nothing stay": ["${swept(s)}", ""],
    "a reserve that is spoken of goes": [
      "AND (e.kind <> 0 OR strpos(' ' || kept",
      "AND (true OR strpos(' ' || kept",
    ],
    "an open call goes": [
      "JOIN ${s}.batch b ON b.node = e.node AND b.n = e.n WHERE b.pos < p_to) THEN RETURN 'again'",
      "JOIN ${s}.batch b ON b.node = e.node AND b.n = e.n WHERE false) THEN RETURN 'again'",
    ],
    "no note says so": [
      "INSERT INTO ${s}.note VALUES (p_node, p_n, 0, 'pruned'",
      "INSERT INTO ${s}.note VALUES (p_node, p_n, 0, 'other'",
    ],
    "a reserve that stayed stays for ever": [
      "WHERE e.node = (k ->> 0)::int AND e.n = (k ->> 1)::bigint AND e.i = (k ->> 2)::int\n      AND strpos",
      "WHERE false\n      AND strpos",
    ],
  }),
  ...of("summing", ["on-postgres", "postgres-keeping", "postgres-rules"], {
    "void calls are counted": ['${voids ? "" : " WHERE x.state <> \'void\'"}', ""],
    "what was used at other times is counted": [
      "ON u.half = x.half AND u.name = x.name",
      "ON u.name = x.name",
    ],
    "units keep what is gone": ["${sign} sum(u.whole) AS whole", "sum(u.whole) AS whole"],
    "units that have columns are not counted": [
      "u(unit, whole) WHERE u.whole IS NOT NULL",
      "u(unit, whole) WHERE false",
    ],
    "units that have none are not counted": [
      "AND e.usage IS NOT NULL GROUP BY",
      "AND false GROUP BY",
    ],
  }),
  ...of("rows", ["postgres-rules"], {
    "what a correction says of units is counted": ['kind !== "adjust" && ', ""],
  }),
  ...of("terms", ["rows", "postgres-terms"], {
    "all are written with each row": ["this.#there.add(terms);", ";"],
    "they are remembered for ever": ["if (this.#by.size >= MOST) this.forget();", ""],
  }),
  ...of("gate", ["postgres-terms"], {
    "terms that are gone are named": ["IF cardinality(k_terms) > 0 AND", "IF false AND"],
    "terms that were erased are named": ["id = k.id AND live OFFSET", "id = k.id OFFSET"],
  }),
  ...of("erasing", ["postgres-terms"], {
    "what ends in the old words stays": [
      "await heard(ask, s);\n    await once();",
      "await heard(ask, s);",
    ],
  }),
  ...of("verify", ["postgres-terms"], {
    "labels pass that have no salt": ['row["labels"] !== null && row["salt"] === null', "false"],
  }),
  ...of("this-node", ["postgres-terms"], {
    "terms are written anew after a lost answer": ["    this.terms.wrote(booked);\n", ""],
  }),
  ...of("erased", ["postgres-terms"], {
    "erased terms are named still": [", live = false FROM", " FROM"],
  }),
  ...of("pruning", ["postgres-terms"], {
    "terms go while their node writes": [
      "IF part.lives THEN PERFORM 1 FROM ${s}.node WHERE epoch = part.node FOR UPDATE; END IF;",
      "",
    ],
    "one node that writes stops it all": [
      "EXCEPTION WHEN lock_not_available THEN NULL;\n    END;\n  END LOOP;\n  p_node",
      "END;\n  END LOOP;\n  p_node",
    ],
  }),
  ...of("prune", ["postgres-terms"], {
    "terms stay": ["  await swept(ask, s);\n", ""],
  }),
  ...of("gate", ["postgres-ample"], {
    "a clock that was set back is not seen without a look": ["IF back OR fits", "IF fits"],
  }),
  ...of("reads", ["postgres-rules"], {
    "the oldest entry is looked for in all": ["entries > 0 AND pos IS NOT NULL", "entries > 0"],
  }),
  ...of("writer", ["postgres-idle"], {
    "its own answer keeps it from the next sign of life": [
      "#node.wrote >= LATELY_MS",
      "#node.wrote >= BEAT_MS",
    ],
  }),
  ...of("ample", ["postgres-ample"], {
    "room is for ever": ["now < room.until && ", ""],
    "a meter that is not known has room": ["room !== undefined && ", "room === undefined || "],
    "what the batch took is room": ["max! - take -", "max! -"],
    "it outlives its connection": ["if (made !== this.#made) this.clear();", ""],
  }),
  ...of("literal", ["literal"], {
    "names are in the order of strings": [
      "unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800",
      "unit",
    ],
  }),
  ...of("closer", ["postgres-closer"], {
    "each gateway waits for its turn": ["FOR UPDATE SKIP LOCKED", "FOR UPDATE"],
    "each look numbers at once": [
      "closed NOT BETWEEN clock_timestamp() - interval '${PACE}' AND clock_timestamp()",
      "true",
    ],
    "a clock that was set back stops it": [
      "closed NOT BETWEEN clock_timestamp() - interval '${PACE}' AND clock_timestamp()",
      "closed < clock_timestamp() - interval '${PACE}'",
    ],
  }),
  ...of("upkeep", ["postgres-closer"], {
    "what another one did not see is forgotten": [
      "if (!done && timers.length > 0) written(LATER_MS);",
      "",
    ],
  }),
  ...of("closer", ["postgres-months"], {
    "the next month has no place": ["FOR i IN 0..p_ahead LOOP", "FOR i IN 0..0 LOOP"],
    "months are those of the server's zone": [
      "make_interval(months => i)) AT TIME ZONE 'UTC');",
      "make_interval(months => i))::timestamptz);",
    ],
  }),
  ...of("pruning", ["postgres-months"], {
    "an empty month stays": ["EXECUTE format('DROP TABLE %s', part.name);", "NULL;"],
    "a month that is to come goes": [
      "AND right(c.relname, 7) < to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY_MM')",
      "",
    ],
  }),
  ...of("upkeep", ["postgres-months"], {
    "nobody looks for the next month": [
      "every(MONTHS_MS, () => ask({ text: `SELECT ${s}.months_1(1)` }));",
      "",
    ],
  }),
  ...of("prune", ["on-postgres", "postgres-keeping"], {
    "an open call is no limit": ["(await oldestOpen(ask, s))?.pos ?? Infinity", "Infinity"],
    "it has no hash": ["base: textHash(text),", 'base: "",'],
  }),
  ...of("fold", ["on-postgres", "postgres-keeping"], {
    "a row of that very moment goes": [
      "if (till >= before || pos >= limit) return cut;",
      "if (till > before || pos >= limit) return cut;",
    ],
    "the batch of the limit goes": [
      "if (till >= before || pos >= limit) return cut;",
      "if (till >= before || pos > limit) return cut;",
    ],
  }),
  ...of("pruned", ["on-postgres", "postgres-keeping"], {
    "a changed base is not found": ['textHash(found["text"]!) !== said.base ||', ""],
    "changed sums are not found": [
      'if (sumsLink(before, Number(row["quarter"]), row["text"]!) !== row["hash"])',
      "if (false)",
    ],
    "missing sums are not found": [
      'if (before !== said.sums || n !== base.sums || more!["are"] === "true")',
      "if (false)",
    ],
    "changed notes are not found": [
      "if ((await notesHash(ask, s, node, n)) !== notes)",
      "if (false)",
    ],
    "a changed reserve is not found": ["if (named.get(id) !== carriedHash(row))", "if (false)"],
    "a missing reserve is not found": [
      "for (const id of named.keys())\n    yield",
      "for (const id of [])\n    yield",
    ],
  }),
  ...of("archive", ["on-postgres", "postgres-keeping"], {
    "labels are there": ["labels ? row : withoutLabels(row)", "row"],
    "a batch more is there": ['if (Number(batch["pos"]) >= to) break;', ""],
    "it does not say where it ends": ['end = bytes(batch["link"]!).toString("hex");', ""],
  }),
  ...of("connecting", ["postgres-tls"], {
    "any server is believed": ["rejectUnauthorized: true", "rejectUnauthorized: false"],
    "its authority is not asked": ["...(caPem && { ca: caPem }),", ""],
    "it does not prove itself": ["...(certPem && { cert: certPem }),", ""],
    "a connection that leaves is plain": ['(tls === "auto" && isNear(url))', '(tls === "auto")'],
    "a password in a file is not read": ["if (file === undefined) return url;", "return url;"],
    "the end of a line is part of it": [".toString().trimEnd()", ".toString()"],
  }),
};
