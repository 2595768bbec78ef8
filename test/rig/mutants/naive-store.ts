// A simple store with one line per row. Without a bug it keeps its guarantees. Each bug occurs in
// real gateways, and the crash rig must find it.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  defineStore,
  type StoreCommand,
  type LedgerEntry,
  type KeyRecord,
  type Reserve,
  type Settle,
} from "tollgate/plugin";

type Line = { entry: LedgerEntry } | { key: KeyRecord };

export default defineStore({
  api: 1,
  name: "naive",
  summary: "A line a row, with a bug if you like",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      bug: {
        enum: ["none", "late-settle", "no-reserve", "no-unique-index", "small-presumption"],
        default: "none",
        description: "What is wrong with it",
      },
      file: { type: "string", default: "", description: "Where; its own folder by default" },
    },
  },
  setup({ bug, file }, ctx) {
    const path = file || join(ctx.stateDir(), "ledger.jsonl");
    const rows: LedgerEntry[] = [];
    const keys = new Map<string, KeyRecord>();
    const reserves = new Map<string, LedgerEntry>();
    const settled = new Set<string>();
    let instance = "";
    let batches = 0;

    const take = (line: Line): void => {
      if ("key" in line) return void keys.set(line.key.digest, line.key);
      rows.push({ ...line.entry, seq: rows.length + 1 });
      if (line.entry.kind === "reserve") reserves.set(line.entry.attempt, line.entry);
      else settled.add(line.entry.attempt);
    };
    const write = (line: Line): void => {
      appendFileSync(
        path,
        `${JSON.stringify(line, (_, v: unknown) => (typeof v === "bigint" ? { n: `${v}` } : v))}\n`,
      );
      take(line);
    };
    const settle = (c: Settle & { at: number }): void => {
      const reserve = reserves.get(c.attempt);
      if (!reserve || (bug !== "no-unique-index" && settled.has(c.attempt))) return;
      write({
        entry: {
          ...reserve,
          kind: "settle",
          at: c.at,
          state: c.state,
          usage: c.usage,
          costNano: c.costNano,
          outcome: c.outcome,
          instance,
        },
      });
    };
    const reserve = (c: Reserve & { at: number }): void => {
      if (reserves.has(c.attempt)) return;
      const entry: LedgerEntry = {
        seq: 0,
        kind: "reserve",
        attempt: c.attempt,
        request: c.request,
        at: c.at,
        key: c.key,
        target: c.target,
        usage: {},
        costNano: null,
        holdNano: c.holdNano,
        state: "open",
        outcome: "open",
        labels: c.labels,
        instance,
      };
      // Kept in memory until its end is known.
      if (bug === "no-reserve") reserves.set(c.attempt, entry);
      else write({ entry });
    };

    return {
      async open(owner) {
        instance = owner.instance;
        if (existsSync(path))
          for (const text of readFileSync(path, "utf8").split("\n"))
            if (text !== "" && text.endsWith("}"))
              take(
                JSON.parse(text, (_, v) =>
                  v && typeof v === "object" && "n" in v && Object.keys(v).length === 1
                    ? BigInt(v.n)
                    : v,
                ) as Line,
              );
        let recovered = 0;
        for (const [attempt, { holdNano }] of reserves)
          if (!settled.has(attempt)) {
            recovered++;
            settle({
              do: "settle",
              at: Date.now(),
              attempt,
              state: "estimated",
              usage: {},
              // As if nothing had been written.
              costNano: bug === "small-presumption" ? 0n : (holdNano ?? null),
              outcome: "recovered",
            });
          }
        return { epoch: 1, recovered };
      },
      async apply(batch) {
        const settles = batch.filter(
          (c): c is Extract<StoreCommand, { do: "settle" }> => c.do === "settle",
        );
        for (const c of batch) {
          if (c.do === "reserve") reserve(c);
          if (c.do === "key") write({ key: c.key });
        }
        if (bug === "late-settle" && settles.length > 0)
          // Acknowledged first, written later.
          void sleep(200).then(() => settles.forEach(settle));
        else
          for (const c of settles) {
            if (bug === "no-reserve" && !settled.has(c.attempt))
              write({ entry: reserves.get(c.attempt)! });
            settle(c);
          }
        // Written, and the response lost: the caller repeats it.
        if (bug === "no-unique-index" && settles.length > 0 && ++batches % 4 === 0)
          throw new Error("The connection was lost.");
        return batch.map(() => ({ ok: true as const }));
      },
      findKey: async (digest) => keys.get(digest),
      listKeys: async () => ({ items: [...keys.values()] }),
      listEntries: async (_query, page) => {
        const from = Number(page?.after ?? 0);
        const items = rows.slice(from, from + (page?.limit ?? 100));
        const next = from + items.length;
        return { items, ...(next < rows.length && { next: String(next) }) };
      },
      sumEntries: async () => [],
    };
  },
});
