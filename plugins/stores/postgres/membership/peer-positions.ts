// How far other nodes had come, as this one has seen it. A database that was set back knows less: a node that lives tells it again, and of one
// that does not, another one has to say what is missing.
import type { StoreEvent } from "tollgate/plugin";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { textArray } from "../connection/array-literal.ts";

interface PeerPosition {
  readonly id: string;
  n: number;
  /** It was further once; what its row says of its last sign of life then. */
  behind?: { readonly alive: string | undefined };
}

/** A node that lives has told by then what its database has lost. */
const REPLAY_GRACE_MS = 2_500;
/** Nodes that are kept in mind. */
const MAX_PEERS = 1_000;

export class PeerPositions {
  readonly #schema: string;
  readonly #byEpoch = new Map<string, PeerPosition>();
  #connectionId = 0;
  #nextCheckAt = Infinity;

  constructor(schema: string) {
    this.#schema = schema;
  }

  /** Not only with each look for the dead: another connection may be to a database that was set back, and one more look says what of it stays missing. */
  isDue(made: number): boolean {
    if (made !== this.#connectionId) this.#nextCheckAt = 0;
    this.#connectionId = made;
    return performance.now() >= this.#nextCheckAt;
  }

  /** With each look for the dead. Says what is missing, each once, and not before a node that lives had time to tell it. */
  async check(sql: RunSql, own: number): Promise<readonly StoreEvent[]> {
    const rows = await sql({
      text: `SELECT w.epoch, w.id, w.n, w.last_heartbeat::text AS last_heartbeat, w.state,
          (SELECT max(y.epoch) FROM ${this.#schema}.node y WHERE y.id = w.id) AS last
        FROM ${this.#schema}.node w WHERE w.epoch <> $1 AND (w.state = 'live' OR w.epoch = ANY ($2::int[])
          OR w.id = ANY ($3::text[]))`,
      values: [
        own,
        textArray([...this.#byEpoch.keys()]),
        textArray([...new Set([...this.#byEpoch.values()].map(({ id }) => id))]),
      ],
    });
    const news = [...this.#byEpoch].flatMap(([epoch, head]) =>
      this.#findMissing(epoch, head, rows),
    );
    for (const { epoch, id, n, state } of rows)
      if (state === "live" && !this.#byEpoch.has(epoch!) && this.#byEpoch.size < MAX_PEERS)
        this.#byEpoch.set(epoch!, { id: id!, n: Number(n) });
    const behind = [...this.#byEpoch.values()].some((head) => head.behind);
    this.#nextCheckAt = behind ? performance.now() + REPLAY_GRACE_MS : Infinity;
    return news;
  }

  #findMissing(epoch: string, head: PeerPosition, rows: readonly Row[]): StoreEvent[] {
    const row = rows.find((each) => each["epoch"] === epoch && each["id"] === head.id);
    const n = Number(row?.["n"] ?? 0);
    if (row && n >= head.n) {
      head.n = n;
      delete head.behind;
      // It writes nothing more.
      if (row["state"] !== "live") this.#byEpoch.delete(epoch);
      return [];
    }
    // Another process has told what it left, or itself under another number.
    const later = rows.some(({ id, last }) => id === head.id && Number(last) > Number(epoch));
    const alive = row?.["last_heartbeat"] ?? undefined;
    if (later) this.#byEpoch.delete(epoch);
    else if (!head.behind || head.behind.alive !== alive) head.behind = { alive };
    else {
      this.#byEpoch.delete(epoch);
      return [{ type: "rows_lost", instance: head.id, from: n + 1, to: head.n }];
    }
    return [];
  }
}
