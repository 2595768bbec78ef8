// One changed line in the store of several gateways at a time: its purpose, and the tests that must
// fail. `npm run rig fleet-mutants` runs them.
import type { ChangedSource } from "../../../rig/mutants/changed-source.ts";

export interface Mutant extends ChangedSource {
  /** Test files, relative to this folder and without `.test.ts`. */
  readonly by: readonly string[];
  /** Tests of these files whose title contains one of these words. */
  readonly named?: string | undefined;
}

const store = (file: string) =>
  file.startsWith("src/") ? `${file}.ts` : `plugins/stores/postgres/${file}.ts`;

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

/** Named by their file, and by the resulting behavior of the store. */
export const MUTANTS: Readonly<Record<string, Mutant>> = {
  // Budgets that all gateways use.
  ...of(
    "schema/budget-lease-sql",
    ["budgets/lease-counts", "budgets/budget-leases", "failover/database-outage"],
    {
      "what a slice has spent is not added to its meter": [
        "SET level = m.level + p.spent, reserved",
        "SET level = m.level, reserved",
      ],
      "what is set aside is not held": [
        "reserved = m.reserved - p.spent + p.part, peak",
        "reserved = m.reserved - p.spent, peak",
      ],
      "a slice is all that is left": ["r.room / (2 * live)", "r.room"],
      "a budget is sliced to its very end": ["r.room < 4 * live * r.take OR ", ""],
      "what is spent is told again and again": [
        "SET amount = i.amount + excluded.amount, spent = 0",
        "SET amount = i.amount + excluded.amount",
      ],
      "what goes back is held still": [
        "SET reserved = m.reserved - g.reserved, level",
        "SET reserved = m.reserved, level",
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
    },
  ),
  ...of(
    "leases/budget-leases",
    ["budgets/lease-counts", "budgets/budget-leases", "failover/database-outage"],
    {
      "a slice of a higher limit is spent": ["sum.max < own.hot.max", "false"],
      "a call that does not fit is counted there": [
        "own.amount < sum.running || own.amount < (sum.required ?? 0n)",
        "false",
      ],
      "what is sent is there to be spent twice": ["own.amount -= taken(sum);", ";"],
      "a batch that failed was spent": [
        "own.amount += taken(sum) - (happened ? sum.running : 0n);",
        "own.amount += taken(sum) - sum.running;",
      ],
      "what others hold is room": ["reserved - spent - amount, 0", "-amount, 0"],
      "a slice that was spent apart is spent again": ["this.#wasSpentOffline ? undefined : ", ""],
      "a new connection believes the old slices": [
        "if (made !== this.#connectionId && this.#connectionId !== 0) await this.#reloadOwn(sql, node);",
        "",
      ],
      "no one is asked for theirs": [
        "(await recallLeases(sql, this.#options.schema, fresh)) > 0",
        "false",
      ],
      "its own does not go back to who is refused": [
        '      return "own";',
        "      return undefined;",
      ],
      "what another one needs is kept": ["new Set([...needed.back, ...gone])", "new Set(gone)"],
      "a lowered limit is not seen": ["if (touched && touched.max < max) return true;", ""],
      "what it has spent is never told": ["    await this.#reportSpent(sql, node);", ""],
      "what is crossed by it is not said": [
        "this.#options.onThresholdsReached(reachedThresholdsIn(rows));",
        "",
      ],
      "an idle one keeps it": [
        "!this.#options.offline && (!touched || touched.expectedCalls < 1)",
        "false",
      ],
    },
  ),
  ...of("write/batch-submit", ["budgets/budget-leases"], {
    "what is sent is not counted": [
      'confirmLeases?.(result.status === "ok");',
      "confirmLeases?.(false);",
    ],
  }),
  ...of("leases/budget-activity", ["budgets/lease-counts", "budgets/budget-leases"], {
    "rates are sliced": [
      "if (max === null || !isCalendarPeriod(parseMeterId(id).per) || isMemberMeter(id)) continue;",
      "if (max === null || isMemberMeter(id)) continue;",
    ],
    "a budget that nobody draws on is hot": [
      ".filter(([, { expectedCalls }]) => expectedCalls >= MIN_CALLS)",
      "",
    ],
  }),
  ...of("write/denial-cache", ["budgets/exhausted-budget"], {
    "nothing is remembered": ["last.count < FLOOD_DENIALS ||", "last.count > 0 ||"],
    "a limit that was raised is spent": ["last.limit !== limit || take", "take"],
    "less does not fit either": [" || take < last.take) continue;", ") continue;"],
    "a few are a flood": ["const FLOOD_DENIALS = 20;", "const FLOOD_DENIALS = 1;"],
    "a moment is a minute": ["const CACHE_TTL_MS = 250;", "const CACHE_TTL_MS = 60_000;"],
    "what has ended makes no room": [
      "if (released > 0n) this.#byMeter.delete(id);",
      "void [id, released];",
    ],
    "nor in its own batch": [
      'if (c.do === "settle") this.#dropReleased(mine.get(c.attempt)?.row.meterAmounts ?? []);',
      "",
    ],
    "a call that was let through is refused when it is told again": [
      'if (c.do !== "reserve" || mine.has(c.attempt)) continue;',
      'if (c.do !== "reserve") continue;',
    ],
  }),
  // During a database outage.
  ...of("leases/offline-calls", ["failover/database-outage"], {
    "a budget without a slice is spent": [
      "if (part === undefined ||",
      "if (part === undefined) continue;\n        if (",
    ],
    "a slice that is spent lets nothing through but what takes nothing": [
      " || (here && here.level + here.reserved >= part)",
      "",
    ],
    "keys without a budget go on": ["return budgets > 0 ? shares : undefined;", "return shares;"],
    "it goes on for ever": ["performance.now() - this.#startedAt > this.#maxMs", "false"],
    "rates are whole": [
      "let max = limit > 0n && limit < live ? 1n : limit / live;",
      "let max = limit;",
    ],
  }),
  ...of("offline/offline-mode", ["failover/resync", "failover/database-outage", "failover/spool"], {
    "what is on no disk has happened": [
      "await this.#spool()!.appendUnsent(toSpool);",
      "void this.#spool()!.appendUnsent(toSpool).catch(() => {});",
    ],
    "what could not be written stays taken": ["this.#newCalls?.rollback();", ""],
    "it is not owed": ["if (toSpool.length > 0) this.#spooled.push(toSpool);", ""],
    "a call that is told twice is two": [
      "if (this.#newCalls.isOpen(c.attempt)) return ALLOWED;",
      "",
    ],
    "its end gives no room": [
      "if (this.#newCalls?.isOpen(c.attempt)) this.#newCalls.settle(c, now(c.at));",
      "",
    ],
    "a lost batch stays open": [
      'for (const c of sent) if (c.do === "reserve") this.#uncertainAttempts.add(c.attempt);',
      "",
    ],
    "what was spent may be spent in the next": ["this.#newCalls?.end();", ""],
    "what is paid is owed still": [
      "await this.#serialQueue(() => this.#spool()!.clearUnsent());",
      "",
    ],
    "what is decided is decided beside the rest": [
      "this.#serialQueue(() => this.#decide(batch, now));",
      "this.#decide(batch, now);",
    ],
    "the disk is cleared beside what it is to keep": [
      "this.#serialQueue(() => this.#spool()!.clearUnsent())",
      "this.#spool()!.clearUnsent()",
    ],
    "what is being decided is forgotten": ["return this.#deciding;", "return undefined;"],
  }),
  ...of("offline/offline-mode", ["failover/database-outage"], {
    "where it refuses what is new it says that there is room": [
      "return this.acceptsNewCalls ? ALLOWED : this.failUnavailable();",
      "return ALLOWED;",
    ],
    "where it refuses what is new it begins all the same": [
      "if (!this.#newCalls || c.job) throw createNotNowFault();",
      "if (!this.#newCalls || c.job) return ALLOWED;",
    ],
  }),
  ...of("writer", ["failover/database-outage"], {
    "what ends where new calls are refused is on no disk": [
      "if (spoolDir) this.#offlineMode",
      "if (spoolDir && offline) this.#offlineMode",
    ],
  }),
  ...of("writer", ["failover/loss-report"], {
    "what is lost is looked for with a sign of life alone": [
      "      if (this.#node.needsPeerCheck) await this.#node.checkPeers(sql);\n      ",
      "",
    ],
    "one that is busy does not look": [
      "if (!quiet && !this.#budgetLeases && !this.#node.needsPeerCheck) return;",
      "if (!quiet && !this.#budgetLeases) return;",
    ],
  }),
  ...of("offline/spool", ["failover/spool", "failover/database-outage", "failover/failover"], {
    "the ring is no file": ["await segment.file.write(line);", ""],
    "what is owed is no file": ["await file.write(`${toJson(batch)}\\n`);", ""],
    "the oldest file stays": ["await this.#disk.remove(name(this.#segment - SEGMENTS));", ""],
    "a ring is two files": ["const SEGMENTS = 3;", "const SEGMENTS = 1;"],
    "files are read as their names sort": [
      ".toSorted(\n        (a, b) => Number(a.slice(REPLAY_PREFIX.length)) - Number(b.slice(REPLAY_PREFIX.length)),\n      );",
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
    "each line is complained of": ["this.#isBroken = true;", ""],
  }),
  ...of("resync", ["failover/resync", "failover/failover"], {
    "a key that was revoked meanwhile is good for its first call": [
      "    await node.heartbeat(sql);\n  }",
      "  }",
    ],
  }),
  ...of("resync", ["failover/resync", "failover/database-outage"], {
    "it goes on as one that is dead": ["if (!(await node.resume(sql, about))) {", "if (false) {"],
    "what is being decided meanwhile is not told": [
      "else if (outage.deciding) await outage.deciding;",
      "",
    ],
  }),
  ...of("spool-replay", ["failover/database-outage", "failover/failover", "failover/spool"], {
    "what the database has is told again as missing": [
      "n > (known.get(epoch) ?? -1)",
      "n >= 0 && epoch >= 0",
    ],
    "what it owes is not told": [
      "const batches = [...missing.map(({ batch }) => batch), ...unsent];",
      "const batches = missing.map(({ batch }) => batch);",
    ],
    "the ring is not told": [
      "const batches = [...missing.map(({ batch }) => batch), ...unsent];",
      "const batches = [...unsent];",
    ],
    "it lives on": ["    await markNodeLeft(sql, schema, epoch);", ""],
    "what it had set aside stays": ["  await returnLeases(sql, schema, instance);", ""],
  }),
  // A database that was set back.
  ...of(
    "offline/replay-buffer",
    ["failover/failover", "unknown-outcomes", "failover/replay-buffer"],
    {
      "what was refused is a fact": ["&& verdicts[i]?.ok !== false", ""],
      "nothing is kept": ["this.#entries.push({ at, n, batch: facts });", ""],
      "it is kept for ever": [
        "oldest.at < at - MAX_AGE_MS || this.#commandCount > MAX_COMMANDS;",
        "false;",
      ],
      "the last batch is not told": [
        "entry.n > n ? [entry.batch] : []",
        "entry.n > n + 1 ? [entry.batch] : []",
      ],
      "what is forgotten is whole": [
        "const whole = n >= this.#droppedUpTo;",
        "const whole = true;",
      ],
      "a call that was let through is denied": [
        "if (denied.length > 0) await exactly(denied.map(toFact));",
        "",
      ],
      "one that cannot be keeps the others away": [
        'if (getFault(error)?.kind !== "invalid") throw error;\n    for',
        "throw error;\n    for",
      ],
      "it is told, and owed still": [
        "    owed.shift();",
        "    owed.push(owed.shift()!);\n    if (owed.length > 0) return;",
      ],
    },
  ),
  ...of("local-node", ["local-node", "failover/failover", "unknown-outcomes"], {
    "one that is taken for dead tries for ever": [
      "    await this.#ensureSynced(sql);\n    if (this.isUnknownToDatabase ||",
      "    await this.catchUp(sql);\n    if (this.isUnknownToDatabase ||",
    ],
    "it ends before it has told all": [
      "    await this.catchUp(sql);\n    return this.isUnknownToDatabase ? failFenced() : sql;",
      "    return sql;",
    ],
    "it is another one where a telling broke": ["        this.position = before;\n        ", ""],
    "a database that was set back is not seen": ["if (n >= before) return;", "return;"],
    "a batch that happened is told again": ["if (pending?.head.equals(head)) pending.done();", ""],
    "a new connection is the old one": [
      "(this.position && this.syncedConnection !== this.#connection.connectionCount)",
      "false",
    ],
    "what is gone is not said": [
      "if (!whole)\n      this.serverState.onEvent(",
      "if (false) this.serverState.onEvent(",
    ],
    "its disk is not asked": [
      'for (const left of await readLeftSpools(spoolDir(), own ? instance : "", disk)) {',
      "for (const left of [] as Awaited<ReturnType<typeof readLeftSpools>>) {",
    ],
    "a node that is gone begins with nothing": [
      "if (this.isUnknownToDatabase)\n      this.unsentBatches.push(...this.replayBuffer.takeAfter(-1).batches);",
      "",
    ],
    "what was told under another row is kept no longer": [
      "this.replayBuffer.onNewNode();",
      "this.replayBuffer.takeAfter(-1);",
    ],
  }),
  ...of("membership/peer-positions", ["failover/failover", "failover/peer-positions"], {
    "a node that is told of late is named at once": [
      "else if (!head.behind || head.behind.alive !== alive) head.behind = { alive };\n    else {",
      "else {",
    ],
    "a head that went back is believed": ["if (row && n >= head.n) {", "if (row) {"],
    "one that has told all is named": [
      "if (later) this.#byEpoch.delete(epoch);\n    else if",
      "if",
    ],
    "it is named again and again": ["    else {\n      this.#byEpoch.delete(epoch);", "    else {"],
    "one more is missing than is": ["from: n + 1, to: head.n", "from: n, to: head.n"],
    "how far it came is forgotten": ["      head.n = n;\n      ", ""],
  }),
  // Clocks and frequencies.
  ...of(
    "write/batch-submit",
    ["contract"],
    {
      "rates count by the moments of commands": [
        'settings.clock === "command" ? (batch.find((c) => c.do !== "heartbeat")?.at ?? null) : null;',
        '(batch.find((c) => c.do !== "heartbeat")?.at ?? null);',
      ],
    },
    "an hour off",
  ),
  ...of("write/slow-path", ["failover/settled-once"], {
    "two gateways end a dead one's call": [
      "WHERE attempt = ANY (${withJobs}) ORDER BY attempt FOR UPDATE",
      "WHERE attempt = ANY (${withJobs}) ORDER BY attempt",
    ],
  }),
  // Kept and deleted rows.
  ...of("schema/compaction-sql", ["contract", "retention"], {
    "sums of days keep what is gone": [
      '${addToRollupsSql(schema, "b.seq >= p_from AND b.seq < p_to", "-")}',
      "",
    ],
    "sums of nothing stay": ["${deleteEmptyRollupsSql(schema)}", ""],
    "a reserve that is spoken of goes": [
      "AND (e.kind <> 0 OR strpos(' ' || kept",
      "AND (true OR strpos(' ' || kept",
    ],
    "an open call goes": [
      "JOIN ${schema}.batch b ON b.node = e.node AND b.n = e.n WHERE b.seq < p_to) THEN RETURN 'again'",
      "JOIN ${schema}.batch b ON b.node = e.node AND b.n = e.n WHERE false) THEN RETURN 'again'",
    ],
    "no note says so": [
      "INSERT INTO ${schema}.note VALUES (p_node, p_n, 0, 'compacted'",
      "INSERT INTO ${schema}.note VALUES (p_node, p_n, 0, 'other'",
    ],
    "a reserve that stayed stays for ever": [
      "WHERE e.node = (k ->> 0)::int AND e.n = (k ->> 1)::bigint AND e.i = (k ->> 2)::int\n      AND strpos",
      "WHERE false\n      AND strpos",
    ],
  }),
  ...of("schema/rollup-sql", ["contract", "retention", "rules"], {
    "void calls are counted": ['x${includesVoid ? "" : " WHERE x.state <> \'void\'"}', ""],
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
  ...of("src/store/kit/column-codec", ["rules"], {
    "what a correction says of units is counted": ['kind !== "adjust" && ', ""],
  }),
  ...of("rows/call-terms", ["rows", "call-terms"], {
    "all are written with each row": ["this.#stored.add(terms);", ";"],
    "they are remembered for ever": ["if (this.#byName.size >= MAX_TERMS) this.invalidate();", ""],
  }),
  ...of("schema/apply-batch", ["call-terms"], {
    "terms that are gone are named": ["IF cardinality(k_terms) > 0 AND", "IF false AND"],
    "terms that were erased are named": ["id = k.id AND live OFFSET", "id = k.id OFFSET"],
  }),
  ...of("retention/erasure", ["call-terms"], {
    "what ends in the old words stays": [
      "await waitForPropagation(sql, schema);\n    await once();",
      "await waitForPropagation(sql, schema);",
    ],
  }),
  ...of("audit/verify", ["call-terms"], {
    "labels pass that have no salt": ['row["labels"] !== null && row["salt"] === null', "false"],
  }),
  ...of("local-node", ["call-terms"], {
    "terms are written anew after a lost answer": ["    this.terms.markStored(booked);\n    ", ""],
  }),
  ...of("schema/erased-hashes", ["call-terms"], {
    "erased terms are named still": [", live = false FROM", " FROM"],
  }),
  ...of("schema/compaction-sql", ["call-terms"], {
    "terms go while their node writes": [
      "IF part.lives THEN PERFORM 1 FROM ${schema}.node WHERE epoch = part.node FOR UPDATE; END IF;",
      "",
    ],
    "one node that writes stops it all": [
      "EXCEPTION WHEN lock_not_available THEN NULL;\n    END;\n  END LOOP;\n  p_node",
      "END;\n  END LOOP;\n  p_node",
    ],
  }),
  ...of("retention/compaction-run", ["call-terms"], {
    "terms stay": ["  await deleteUnusedTerms(sql, schema);\n  ", ""],
  }),
  ...of("schema/apply-batch", ["budgets/headroom"], {
    "a clock that was set back is not seen without a look": ["IF back OR fits", "IF fits"],
  }),
  ...of("read/store-reads", ["rules"], {
    "the oldest entry is looked for in all": ["entries > 0 AND seq IS NOT NULL", "entries > 0"],
  }),
  ...of("writer", ["idle-gateway"], {
    "its own answer keeps it from the next sign of life": [
      "#node.lastWriteAt >= FRESH_MS",
      "#node.lastWriteAt >= HEARTBEAT_INTERVAL_MS",
    ],
  }),
  ...of("write/headroom-cache", ["budgets/headroom"], {
    "room is for ever": ["now < room.until && ", ""],
    "a meter that is not known has room": ["room !== undefined && ", "room === undefined || "],
    "what the batch took is room": ["max! - take -", "max! -"],
    "it outlives its connection": ["if (made !== this.#connectionId) this.clear();", ""],
  }),
  ...of("connection/array-literal", ["array-literal"], {
    "names are in the order of strings": [
      "unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800",
      "unit",
    ],
  }),
  ...of("schema/sequencer", ["entry-numbers"], {
    "each gateway waits for its turn": ["FOR UPDATE SKIP LOCKED", "FOR UPDATE"],
    "each look numbers at once": [
      "sequenced_at NOT BETWEEN clock_timestamp() - interval '${SEQUENCE_INTERVAL}' AND clock_timestamp()",
      "true",
    ],
    "a clock that was set back stops it": [
      "sequenced_at NOT BETWEEN clock_timestamp() - interval '${SEQUENCE_INTERVAL}' AND clock_timestamp()",
      "sequenced_at < clock_timestamp() - interval '${SEQUENCE_INTERVAL}'",
    ],
  }),
  ...of("membership/periodic-maintenance", ["entry-numbers"], {
    "what another one did not see is forgotten": [
      "if (!done && timers.length > 0) written(NUMBERING_RETRY_MS);",
      "",
    ],
  }),
  ...of("schema/sequencer", ["monthly-partitions"], {
    "the next month has no place": ["FOR i IN 0..p_ahead LOOP", "FOR i IN 0..0 LOOP"],
    "months are those of the server's zone": [
      "make_interval(months => i)) AT TIME ZONE 'UTC');",
      "make_interval(months => i))::timestamptz);",
    ],
  }),
  ...of("schema/compaction-sql", ["monthly-partitions"], {
    "an empty month stays": ["EXECUTE format('DROP TABLE %s', part.name);", "NULL;"],
    "a month that is to come goes": [
      "AND right(c.relname, 7) < to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY_MM')",
      "",
    ],
  }),
  ...of("membership/periodic-maintenance", ["monthly-partitions"], {
    "nobody looks for the next month": [
      "every(PARTITION_INTERVAL_MS, () => sql({ text: `SELECT ${schema}.create_partitions_1(1)` }));",
      "",
    ],
  }),
  ...of("retention/compaction-run", ["contract", "retention"], {
    "an open call is no limit": [
      "(await oldestOpenCall(sql, schema))?.seq ?? Infinity",
      "Infinity",
    ],
    "it has no hash": ["checkpoint: hashText(text),", 'checkpoint: "",'],
  }),
  ...of("retention/compaction", ["contract", "retention"], {
    "a row of that very moment goes": [
      "if (till >= before || seq >= limit) return cut;",
      "if (till > before || seq >= limit) return cut;",
    ],
    "the batch of the limit goes": [
      "if (till >= before || seq >= limit) return cut;",
      "if (till >= before || seq > limit) return cut;",
    ],
  }),
  ...of("retention/checkpoint", ["contract", "retention"], {
    "a changed base is not found": ['hashText(found["text"]!) !== note.checkpoint ||', ""],
    "missing sums are not found": [
      'if (chain.hash !== note.rollups || chain.n !== base.rollups || more!["are"] === "true")',
      "if (false)",
    ],
    "changed notes are not found": [
      "if ((await hashNotes(sql, schema, node, n)) !== notes)",
      "if (false)",
    ],
  }),
  ...of("src/store/kit/checkpoint", ["contract", "retention"], {
    "changed sums are not found": [
      "if (rollupHash(this.hash, quarter, text) !== its)",
      "if (false)",
    ],
    "a changed reserve is not found": ["if (missing.get(id) !== its)", "if (false)"],
    "a missing reserve is not found": [
      "for (const id of missing.keys())\n    yield",
      "for (const id of [])\n    yield",
    ],
  }),
  ...of("retention/archive", ["contract", "retention"], {
    "labels are there": [
      "findText: labels ? (hash) => texts.get(hash) ?? { salt: null, text: null } : undefined,",
      "findText: (hash) => texts.get(hash) ?? { salt: null, text: null },",
    ],
    "a batch more is there": ["if (first >= to) break;", ""],
  }),
  ...of("src/store/kit/archive", ["contract", "retention"], {
    "it does not say where it ends": ["end = { seq: commit.last, hash: commit.hash };", ""],
  }),
  ...of("connection/connection-config", ["tls"], {
    "any server is believed": ["rejectUnauthorized: true", "rejectUnauthorized: false"],
    "its authority is not asked": ["...(caPem && { ca: caPem }),", ""],
    "it does not prove itself": ["...(certPem && { cert: certPem }),", ""],
    "a connection that leaves is plain": ['(tls === "auto" && isLocal(url))', '(tls === "auto")'],
    "a password in a file is not read": ["if (file === undefined) return url;", "return url;"],
    "the end of a line is part of it": [".toString().trimEnd()", ".toString()"],
  }),
};
