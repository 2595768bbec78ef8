// A ledger's life: archives, and sums in the place of old rows. It has a connection of its own while something of it is under way.
import { fail, type LedgerKeeping, type Pruned, type PruneProgress } from "tollgate/plugin";
import { archive } from "./archive.ts";
import { readBase } from "./pruned.ts";
import { erase } from "./erasing.ts";
import { planOf } from "./fold.ts";
import type { Ask } from "./line.ts";
import { prune } from "./prune.ts";
import { readArchive } from "./reading-archive.ts";
import type { Writer } from "./writing-door.ts";

/** `keeper`: a connection for what takes long. */
export function keepingOf(
  keeper: <T>(work: (ask: Ask) => Promise<T>) => Promise<T>,
  desk: Ask,
  s: string,
  size: () => Promise<{ bytes?: number | undefined; oldestAt?: number | undefined }>,
  numbered: (ask: Ask) => Promise<void>,
  writer: Pick<Writer, "note" | "remind">,
): LedgerKeeping {
  let under: Promise<Pruned> | undefined;
  async function pruned(
    ask: Ask,
    before: number,
    progress?: (of: PruneProgress) => void,
  ): Promise<Pruned> {
    const room = (await size()).bytes ?? 0;
    const done = await prune(ask, s, before, progress);
    const { bytes = 0, oldestAt } = await size();
    return { ...done, bytes: Math.max(0, room - bytes), since: oldestAt };
  }
  return {
    instead: {
      backup: `Copy the database: pg_dump --schema=${s} as of one moment, or a base backup with its log. tollgate store copy makes one file of the ledger.`,
      restore: `Put back what pg_dump wrote with pg_restore, into a database that no gateway uses, and start a gateway on it.`,
    },
    archive: (file, of) =>
      keeper(async (ask) => {
        await numbered(ask);
        return archive(ask, s, file, of);
      }),
    readArchive,
    plan: (before) =>
      keeper(async (ask) => {
        await numbered(ask);
        return planOf(ask, s, before, (await size()).bytes ?? 0);
      }),
    async prune(before, progress) {
      if (under)
        return fail("conflict", "Rows are being pruned already.", { code: "prune_under_way" });
      under = keeper((ask) => pruned(ask, before, progress)).finally(() => (under = undefined));
      return under;
    },
    erase: (what) => keeper((ask) => erase(ask, s, writer, what)),
    async state() {
      const [base, { bytes = 0, oldestAt }] = [await readBase(desk, s), await size()];
      return {
        bytes,
        ...(oldestAt !== undefined && { oldest: oldestAt }),
        prunedRows: base?.rows ?? 0,
        ...(base && { prunedAt: base.at }),
      };
    },
  };
}
