// How far other nodes had come, as this one has seen it. A database that was set back knows less: a node that lives tells it again, and of one
// that does not, another one has to say what is missing.
import type { StoreNews } from "tollgate/plugin";
import type { Ask, Row } from "./line.ts";
import { texts } from "./literal.ts";

interface Head {
  readonly id: string;
  n: number;
  /** It was further once; what its row says of its last sign of life then. */
  behind?: { readonly alive: string | undefined };
}

/** A node that lives has told by then what its database has lost. */
const TELLS_MS = 2_500;
/** Nodes that are kept in mind. */
const MOST = 1_000;

export class Heads {
  readonly #schema: string;
  readonly #seen = new Map<string, Head>();
  #made = 0;
  #again = Infinity;

  constructor(schema: string) {
    this.#schema = schema;
  }

  /** Not only with each look for the dead: another connection may be to a database that was set back, and one more look says what of it stays missing. */
  due(made: number): boolean {
    if (made !== this.#made) this.#again = 0;
    this.#made = made;
    return performance.now() >= this.#again;
  }

  /** With each look for the dead. Says what is missing, each once, and not before a node that lives had time to tell it. */
  async look(ask: Ask, own: number): Promise<readonly StoreNews[]> {
    const rows = await ask({
      text: `SELECT w.epoch, w.id, w.n, w.alive::text AS alive, w.state,
          (SELECT max(y.epoch) FROM ${this.#schema}.node y WHERE y.id = w.id) AS last
        FROM ${this.#schema}.node w WHERE w.epoch <> $1 AND (w.state = 'live' OR w.epoch = ANY ($2::int[])
          OR w.id = ANY ($3::text[]))`,
      values: [
        own,
        texts([...this.#seen.keys()]),
        texts([...new Set([...this.#seen.values()].map(({ id }) => id))]),
      ],
    });
    const news = [...this.#seen].flatMap(([epoch, head]) => this.#missing(epoch, head, rows));
    for (const { epoch, id, n, state } of rows)
      if (state === "live" && !this.#seen.has(epoch!) && this.#seen.size < MOST)
        this.#seen.set(epoch!, { id: id!, n: Number(n) });
    const behind = [...this.#seen.values()].some((head) => head.behind);
    this.#again = behind ? performance.now() + TELLS_MS : Infinity;
    return news;
  }

  #missing(epoch: string, head: Head, rows: readonly Row[]): StoreNews[] {
    const row = rows.find((each) => each["epoch"] === epoch && each["id"] === head.id);
    const n = Number(row?.["n"] ?? 0);
    if (row && n >= head.n) {
      head.n = n;
      delete head.behind;
      // It writes nothing more.
      if (row["state"] !== "live") this.#seen.delete(epoch);
      return [];
    }
    // Another process has told what it left, or itself under another number.
    const later = rows.some(({ id, last }) => id === head.id && Number(last) > Number(epoch));
    const alive = row?.["alive"] ?? undefined;
    if (later) this.#seen.delete(epoch);
    else if (!head.behind || head.behind.alive !== alive) head.behind = { alive };
    else {
      this.#seen.delete(epoch);
      return [{ type: "lost", instance: head.id, from: n + 1, to: head.n }];
    }
    return [];
  }
}
