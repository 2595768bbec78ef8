// What is no row of a ledger that moves here: records with a note of each, meters, sums of what was pruned, and a note of where all of it comes from.
import type { MovedRest } from "tollgate/plugin";
import { keyCursor, toJson } from "tollgate/store";
import { kindOf } from "./calls.ts";
import { bytes } from "./exact.ts";
import type { Ask } from "./line.ts";
import { numbers, texts } from "./literal.ts";
import { sumsLink, textHash, type PrunedBase, type PrunedNote } from "./pruned.ts";
import { hashOf, noteLine, takenOf } from "./rows.ts";
import { newSalt } from "./salts.ts";

/** The node that moves a ledger, and notes what it does. */
export const MOVER = "move";

/** A node's chain, as far as it goes. */
export interface Chain {
  readonly epoch: number;
  n: number;
  head: Buffer;
}

/** The next batch of a chain. */
export async function linked(
  ask: Ask,
  s: string,
  chain: Chain,
  head: Buffer,
  entries: number,
): Promise<void> {
  chain.n++;
  chain.head = head;
  await ask({
    text: `UPDATE ${s}.node SET n = $2, head = $3 WHERE epoch = $1`,
    values: [chain.epoch, chain.n, head],
  });
  await ask({
    text: `INSERT INTO ${s}.batch (node, n, at, hash, entries) VALUES ($1, $2, clock_timestamp(), $3, $4)`,
    values: [chain.epoch, chain.n, head, entries],
  });
}

export class ArrivingRest {
  readonly #s: string;

  constructor(s: string) {
    this.#s = s;
  }

  /** What operators and commands have written, with a note of each, and one of where all of it comes from. */
  async records(ask: Ask, rest: MovedRest): Promise<void> {
    const s = this.#s;
    const [digests, places, keys] = [
      rest.keys.map(({ digest }) => digest),
      rest.keys.map(keyCursor),
      rest.keys.map(toJson),
    ];
    await ask({
      text: `INSERT INTO ${s}.key SELECT * FROM unnest($1::text[], $2::text[], $3::text[])`,
      values: [texts(digests), texts(places), texts(keys)],
    });
    const accounts = rest.accounts.map(toJson);
    await ask({
      text: `INSERT INTO ${s}.account SELECT * FROM unnest($1::text[], $2::text[])`,
      values: [texts(rest.accounts.map(({ id }) => id)), texts(accounts)],
    });
    await ask({
      text: `INSERT INTO ${s}.price SELECT * FROM unnest($1::text[], $2::text[])`,
      values: [
        texts(rest.prices.map(([hash]) => hash)),
        texts(rest.prices.map(([, price]) => toJson(price))),
      ],
    });
    const audit = rest.audit.map(
      ([entry, end]) => [entry.id, toJson(entry), end && toJson(end)] as const,
    );
    for (const [id, entry, end] of audit)
      await ask({
        text: `INSERT INTO ${s}.audit (id, entry, ended) VALUES ($1, $2, $3)`,
        values: [id, entry, end ?? null],
      });
    for (const [name, value] of rest.shared)
      await ask({
        text: `INSERT INTO ${s}.shared VALUES ($1, $2) ON CONFLICT DO NOTHING`,
        values: [name, Buffer.from(value)],
      });
    const sums = textHash(toJson(rest.totals));
    await this.#notes(ask, [
      ...keys.map((text, i) => ["key", digests[i]!, text] as const),
      ...accounts.map((text, i) => ["account", rest.accounts[i]!.id, text] as const),
      ...audit.map(([id, text]) => ["audit", id, text] as const),
      ...audit.flatMap(([id, , text]) =>
        text === undefined ? [] : [["ended", id, text] as const],
      ),
      ["moved", rest.head ?? "", toJson({ head: rest.head, sums })],
    ]);
  }

  async #notes(
    ask: Ask,
    notes: readonly (readonly [kind: string, id: string, text: string])[],
  ): Promise<void> {
    const chain = await this.#mover(ask);
    const salted = notes.map((note) => [...note, newSalt()] as const);
    const head = hashOf(
      chain.head,
      salted.map((note) => noteLine(...note)),
    );
    await linked(ask, this.#s, chain, head, 0);
    await ask({
      text: `INSERT INTO ${this.#s}.note SELECT $1::int, $2::bigint, ord - 1, kind, id, floor(extract(epoch FROM clock_timestamp()) * 1000), text, salt
        FROM unnest($3::text[], $4::text[], $5::text[], $6::text[]) WITH ORDINALITY AS o(kind, id, text, salt, ord)`,
      values: [
        chain.epoch,
        chain.n,
        ...([0, 1, 2, 3] as const).map((i) => texts(salted.map((note) => note[i]))),
      ],
    });
  }

  async #mover(ask: Ask): Promise<Chain> {
    const [row] = await ask({
      text: `SELECT epoch, n, head FROM ${this.#s}.node WHERE id = $1`,
      values: [MOVER],
    });
    return { epoch: Number(row!["epoch"]), n: Number(row!["n"]), head: bytes(row!["head"]!) };
  }

  /** Meters, with what open calls hold of them. */
  async counted(ask: Ask, { meters, heard }: MovedRest): Promise<void> {
    const s = this.#s;
    const held = new Map<string, bigint>();
    const open = await ask({
      text: `SELECT e.rest FROM ${s}.open o JOIN ${s}.booked e ON e.attempt = o.attempt AND e.began = o.began AND e.kind = 0`,
    });
    for (const { rest } of open)
      for (const [id, amount] of takenOf(rest ?? null))
        if (kindOf(id).period === 0) held.set(id, (held.get(id) ?? 0n) + amount);
    const known = new Set(meters.map(({ id }) => id));
    const all = [
      ...meters,
      ...[...held.keys()]
        .filter((id) => !known.has(id))
        .map((id) => ({ id, level: 0n, at: 0, max: 0n, told: 0n })),
    ];
    await ask({
      text: `INSERT INTO ${s}.meter (id, level, held, at, max, peak, told)
        SELECT * FROM unnest($1::text[], $2::numeric[], $3::numeric[], $4::bigint[], $5::numeric[], $6::numeric[], $7::numeric[])`,
      values: [
        texts(all.map(({ id }) => id)),
        numbers(all.map(({ level }) => level)),
        numbers(all.map(({ id }) => held.get(id) ?? 0n)),
        numbers(all.map(({ at }) => Math.floor(at))),
        numbers(all.map(({ max }) => max)),
        numbers(all.map(({ id, level }) => (kindOf(id).period === 0 ? level : 0n))),
        numbers(all.map(({ told }) => told)),
      ],
    });
    for (const [attempt, usage, costNano] of heard)
      await ask({
        text: `UPDATE ${s}.open SET usage = $2, cost = $3::text::bigint WHERE attempt = $1`,
        values: [attempt, JSON.stringify(usage), costNano === null ? null : String(costNano)],
      });
  }

  async pruned(ask: Ask, { pruned }: MovedRest): Promise<void> {
    if (!pruned) return;
    const s = this.#s;
    let last = "";
    const sums = pruned.sums.map(([quarter, text], i) => {
      last = sumsLink(last, quarter, text);
      return [i + 1, quarter, text, last] as const;
    });
    await ask({
      text: `INSERT INTO ${s}.sums SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[])`,
      values: [
        numbers(sums.map(([n]) => n)),
        numbers(sums.map(([, quarter]) => quarter)),
        texts(sums.map(([, , text]) => text)),
        texts(sums.map(([, , , hash]) => hash)),
      ],
    });
    const { rows, since, till } = pruned;
    const base: PrunedBase = {
      pos: 1,
      link: "",
      since,
      till,
      rows,
      at: Date.now(),
      sums: sums.length,
      carried: [],
      nodes: [],
    };
    const text = JSON.stringify(base);
    await ask({
      text: `INSERT INTO ${s}.base (pos, sums, text) VALUES (1, $1, $2)`,
      values: [sums.length, text],
    });
    const note = { pos: 1, base: textHash(text), sums: last } satisfies PrunedNote;
    await this.#notes(ask, [["pruned", "1", JSON.stringify(note)]]);
  }
}
