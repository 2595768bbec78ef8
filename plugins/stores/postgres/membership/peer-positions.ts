// Tracks the batch numbers of other nodes. If a database was restored to an earlier state, these
// numbers are lower. A live node sends its lost batches again. If the node is not alive, another
// node must report the loss.
import type { StoreEvent } from "tollgate/plugin";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { textArray } from "../connection/array-literal.ts";

interface PeerPosition {
  readonly id: string;
  n: number;
  /**
   * Set if the database has a lower number than before. `alive` is the last heartbeat in the row at
   * that time.
   */
  behind?: { readonly alive: string | undefined };
}

/** Time in milliseconds after which a live node has sent its lost batches to the database again. */
const REPLAY_GRACE_MS = 2_500;
/** Maximum number of tracked nodes. */
const MAX_PEERS = 1_000;

export class PeerPositions {
  readonly #schema: string;
  readonly #byEpoch = new Map<string, PeerPosition>();
  #connectionId = 0;
  #nextCheckAt = Infinity;

  constructor(schema: string) {
    this.#schema = schema;
  }

  /**
   * Returns whether a check is due. A check also runs after a new connection, because it may lead
   * to a restored database. A second check then finds the batches that are still missing.
   */
  isDue(made: number): boolean {
    if (made !== this.#connectionId) this.#nextCheckAt = 0;
    this.#connectionId = made;
    return performance.now() >= this.#nextCheckAt;
  }

  /**
   * Compares the numbers of other nodes. Called with each search for expired nodes. Returns one
   * event for each node whose lost batches were not sent again within `REPLAY_GRACE_MS`.
   */
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
      // A node that is not live writes nothing more.
      if (row["state"] !== "live") this.#byEpoch.delete(epoch);
      return [];
    }
    // A later process has sent the batches of this process, or the node has joined again under a
    // new epoch.
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
