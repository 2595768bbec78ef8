// What is said once for all gateways: values that the first one decides, and crossings that were told.
import type { KeptCrossings, Store } from "tollgate/plugin";
import type { Ask } from "./line.ts";
import { meterOfCrossing, untoldOf } from "./reads.ts";

/** The first that is written is the one that all read. */
export function sharedOf(ask: Ask, s: string): NonNullable<Store["shared"]> {
  const find = async (name: string): Promise<Uint8Array | undefined> => {
    const [row] = await ask({
      text: `SELECT encode(value, 'base64') AS value FROM ${s}.shared WHERE name = $1`,
      values: [name],
    });
    return row && Uint8Array.from(Buffer.from(row["value"]!, "base64"));
  };
  return async (name, make) => {
    const known = await find(name);
    if (known) return known;
    await ask({
      text: `INSERT INTO ${s}.shared VALUES ($1, $2) ON CONFLICT DO NOTHING`,
      values: [name, Buffer.from(await make())],
    });
    return (await find(name))!;
  };
}

/** `write`: a statement among those of this node. */
export const crossingsOf = (ask: Ask, write: Ask, s: string): KeptCrossings => ({
  untold: () => untoldOf(ask, s),
  async told(crossings) {
    for (const crossing of crossings)
      await write({
        text: `UPDATE ${s}.meter SET told = greatest(told, $2::numeric) WHERE id = $1`,
        values: [meterOfCrossing(crossing), String(crossing.used)],
      });
  },
});
