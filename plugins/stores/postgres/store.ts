// The store, put together of its parts.
import { setTimeout as sleep } from "node:timers/promises";
import { fail, faultOf, type Commands, type LedgerMoving, type Store } from "tollgate/plugin";
import { arriving, isMoving, unfinished } from "./arriving.ts";
import { auditOf } from "./audit.ts";
import { chainCommandsOf, commandsOf } from "./commands.ts";
import { configOf, type Address } from "./connecting.ts";
import { crossingsOf, sharedOf } from "./decided.ts";
import { migrate, standing, type Roles } from "./forms.ts";
import { keepingOf } from "./keeping.ts";
import { leaving } from "./leaving.ts";
import { Line, type Ask } from "./line.ts";
import { reading } from "./pool.ts";
import { rememberedKeys } from "./remembered-keys.ts";
import { close, readsOf } from "./reads.ts";
import { isAway, unreachable } from "./trouble.ts";
import { upkeepOf } from "./upkeep.ts";
import { verifyOf } from "./verify.ts";
import { createWriter } from "./writer.ts";
import type { WriterSettings } from "./writing-door.ts";

/** What the store is made of, as options say it. */
export interface PostgresSettings extends Omit<WriterSettings, "named"> {
  readonly address: Address;
  /** The owner of the schema, where that is another one than the one that runs. */
  readonly owner: Address;
  /** Where reports are asked: a replica, perhaps. */
  readonly reports: Address;
  readonly migrates: boolean;
  readonly roles: Roles;
}

export type PostgresStore = Store &
  Commands & {
    /** `goodbye`: false leaves everything as a crash would. For tests of what is left then. */
    close(goodbye?: boolean): Promise<void>;
  };

/** A start waits so long for its database before it says so; the host asks again, for as long as it takes. */
const START_MS = 2_000;
/** A report may take so long. */
const REPORT_MS = 30_000;
const STATEMENT_MS = 2_000;
/** A step of what becomes of the ledger over the years may take so long. */
const KEEPING_MS = 600_000;

export function postgresStore(settings: PostgresSettings): PostgresStore {
  const { schema: s, address, leaseMs } = settings;
  const line = new Line(() => configOf(address, { statementMs: STATEMENT_MS }));
  const writer = createWriter(line, { ...settings, named: !address.pooled });
  const desk = reading(
    () => configOf(address, { statementMs: REPORT_MS, silenceMs: REPORT_MS }),
    2,
  );
  const reports = reading(
    () => configOf(settings.reports, { statementMs: REPORT_MS, silenceMs: REPORT_MS }),
    2,
    settings.reports.pooled,
  );
  const upkeep = upkeepOf(desk.ask, s);

  const asOwner = <T>(work: (ask: Ask) => Promise<T>) => apart(settings.owner, 60_000, work);

  const formed = () => formedAs(settings, desk.ask, asOwner);
  async function ready(): Promise<void> {
    await formed();
    if (await isMoving(desk.ask, s)) unfinished();
  }
  const reads = readsOf(
    desk.ask,
    reports.ask,
    s,
    (at) => writer.now(at),
    () => close(desk.ask, s),
  );
  const keys = rememberedKeys(reads.key, writer, settings.away);
  const store: PostgresStore = {
    lease: { ms: leaseMs, beatMs: Math.floor(leaseMs / 3) },
    async open(owner, told = () => {}) {
      const hear = keys.hearing(told);
      for (const until = performance.now() + START_MS; ;)
        try {
          await ready();
          const opened = await writer.open(owner, hear);
          upkeep.begin();
          return opened;
        } catch (error) {
          if (!isAway(error) && faultOf(error)?.code !== "store_unreachable") throw error;
          if (performance.now() > until) unreachable(error);
          await sleep(500);
        }
    },
    async apply(batch) {
      const verdicts = await writer.apply(batch);
      keys.written(batch);
      upkeep.written();
      return verdicts;
    },
    ...reads,
    key: keys.key,
    audit: auditOf(writer, desk.ask, s),
    crossings: crossingsOf(desk.ask, writer.ask, s),
    shared: sharedOf(desk.ask, s),
    // The proof is of what counts: a replica may be behind, or another one.
    verify: () => verifyOf(desk.ask, s, () => close(desk.ask, s)),
    keeping: keepingOf(
      (work) => apart(address, KEEPING_MS, work),
      desk.ask,
      s,
      reads.size,
      (ask) => close(ask, s),
      writer,
    ),
    moving: movingOf(settings, formed),
    commands: {
      ...commandsOf(s, settings.roles, asOwner),
      ...chainCommandsOf(desk.ask, s, () => close(desk.ask, s)),
    },
    async close(goodbye = true) {
      upkeep.end();
      await writer.end(goodbye);
      await Promise.all([desk.end(), reports.end()]);
    },
  };
  return store;
}

/** The schema in the form that this gateway needs. */
async function formedAs(
  { schema, migrates, roles }: PostgresSettings,
  ask: Ask,
  asOwner: <T>(work: (ask: Ask) => Promise<T>) => Promise<T>,
): Promise<void> {
  const { form, expand, known } = await standing(ask, schema);
  if (expand.length === 0) return;
  if (migrates) await asOwner((owner) => migrate(owner, schema, roles));
  else
    fail(
      "invalid",
      `The database has form ${form}, and this gateway needs ${known}: run tollgate store migrate.`,
      { code: "older_form" },
    );
}

/** A connection of its own, for what takes long. */
const lineTo = (to: Address, statementMs: number): Line =>
  new Line(() => configOf(to, { statementMs, silenceMs: statementMs + 10_000 }));

async function apart<T>(
  to: Address,
  statementMs: number,
  work: (ask: Ask) => Promise<T>,
): Promise<T> {
  const own = lineTo(to, statementMs);
  try {
    return await work(await own.ask());
  } catch (error) {
    if (isAway(error)) unreachable(error);
    throw error;
  } finally {
    await own.end();
  }
}

/** `formed`: resolves when the schema is there. */
const movingOf = (
  { address, owner, schema }: PostgresSettings,
  formed: () => Promise<void>,
): LedgerMoving => ({
  async out() {
    const line = lineTo(address, KEEPING_MS);
    return leaving(await line.ask(), schema, () => line.end());
  },
  async in() {
    await formed();
    const line = lineTo(owner, KEEPING_MS);
    return arriving(await line.ask(), schema, () => line.end());
  },
});
