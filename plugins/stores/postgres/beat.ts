// A node from its beginning to its end: signs of life, and that those of others are missing.
import { KNOWN } from "./forms.ts";
import type { Ask } from "./line.ts";

/** What a sign of life says besides. */
export interface Alive {
  /** What the instance says of itself from now on. */
  readonly about?: unknown;
  /** Its clock. */
  readonly at?: number;
}

/** What is heard with one. */
export interface Beat {
  readonly versions: string;
  readonly t: number;
  /** Nodes that do not live and have left calls open. */
  readonly dead: readonly string[];
}

/** `look`: the dead are looked for, too. Undefined: this node was taken for dead itself. */
export async function beat(
  ask: Ask,
  s: string,
  epoch: number,
  look: boolean,
  { about, at }: Alive = {},
): Promise<Beat | undefined> {
  const [row] = await ask({
    text: `SELECT array_to_string(${s}.beat_1($1::int, $2::boolean, $3::text, $4::bigint), ';') AS said`,
    values: [
      epoch,
      String(look),
      about ? JSON.stringify(about) : null,
      at === undefined ? null : Math.floor(at),
    ],
  });
  const [live, versions, t, ...dead] = row!["said"]!.split(";") as [string, string, string];
  return live === "true" ? { versions, t: Number(t), dead } : undefined;
}

/** A row of its own, with a greater number than any before. */
export async function join(
  ask: Ask,
  s: string,
  instance: string,
  about: unknown,
  leaseMs: number,
): Promise<number> {
  const [row] = await ask({
    text: `INSERT INTO ${s}.node (id, about, form, lease) VALUES ($1, $2, $3, make_interval(secs => $4)) RETURNING epoch`,
    values: [instance, about === undefined ? null : JSON.stringify(about), KNOWN, leaseMs / 1_000],
  });
  return Number(row!["epoch"]);
}

/** In good order: what it has open may be settled at once. */
export async function leave(ask: Ask, s: string, epoch: number): Promise<void> {
  await ask({
    text: `UPDATE ${s}.node SET state = 'left' WHERE epoch = $1 AND state = 'live'`,
    values: [epoch],
  });
}
