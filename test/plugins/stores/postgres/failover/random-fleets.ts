// Small random simulations against the real admission function: some gateways on one budget of
// twenty calls, messages that are lost in either direction, gateways that die or pause until their
// lease expires and return, and a database that is set back. Most defects need three events. A
// simulation prints its steps, and the same seed repeats them.
import { getFault } from "../../../../../src/model/error.ts";
import type { StoreCommand, CommandResult } from "../../../../../src/plugin/store/store.ts";
import { reserveCommand, settleCommand } from "../../../../../src/testing/store.ts";
import { connectionConfig } from "../../../../../plugins/stores/postgres/connection/connection-config.ts";
import { PipelinedConnection } from "../../../../../plugins/stores/postgres/connection/pipelined-connection.ts";
import { createWriter } from "../../../../../plugins/stores/postgres/writer.ts";
import type { Writer } from "../../../../../plugins/stores/postgres/writer-interface.ts";
import { createChance } from "../../../../rig/rig.ts";
import { brittle, type BrittleLine } from "../breaking-connection.ts";
import { askAt, makePostgres, settings } from "../../postgres-under-test.ts";
import { copyOf } from "../rolled-back-database.ts";

const TAKE = 1_000n;
const MAX = 20n * TAKE;
const BUDGET = { scope: "account:all", unit: "nano_usd", max: MAX, per: "total" } as const;
const ID = "nano_usd|total|0|account:all";
const STEPS = 40;
/** A host does not retry forever either. */
const TRIES = 40;

interface Gateway {
  readonly name: string;
  readonly writer: Writer;
  readonly line: BrittleLine;
  /** Admitted calls that have not ended. */
  open: string[];
}

export interface World {
  /** Violations. None: all rules hold. */
  readonly wrong: readonly string[];
  readonly done: readonly string[];
}

export async function world(url: string, seed: number): Promise<World> {
  const chanced = createChance(seed);
  const wrong: string[] = [];
  const done: string[] = [];
  const made = await makePostgres(url, { clock: "database" });
  const by = askAt(url);
  const copy = copyOf(by.ask);
  /** Cost of ended calls, by the provider's own bill. */
  const bill = new Map<string, bigint>();
  const gateways: Gateway[] = [];
  let [count, born] = [0, 0];
  /** A copy of the ledger that is older than the exit of any gateway. */
  let copied = false;

  const reaped = () => reached(() => made.store.apply([{ do: "heartbeat", at: Date.now() }]));
  const reached = async <T>(work: () => Promise<T>, again?: () => Promise<unknown>): Promise<T> => {
    for (let tries = 1; ; tries++)
      try {
        return await work();
      } catch (error) {
        if (tries === TRIES || getFault(error)?.kind === "invalid") throw error;
        await again?.().catch(() => undefined);
      }
  };
  /**
   * Like the host: a rejected batch is sent again, and a gateway whose lease expired reopens the
   * store.
   */
  const tell = (of: Gateway, batch: readonly StoreCommand[]): Promise<readonly CommandResult[]> =>
    reached(
      () => of.writer.apply(batch),
      () => of.writer.open({ instance: of.name }, () => {}),
    );
  const begin = async (): Promise<void> => {
    const name = `g${born++}`;
    const { address } = settings(url);
    const to = new PipelinedConnection(() => connectionConfig(address, { statementMs: 2_000 }));
    const line = brittle(to, chanced, 0.02);
    const writer = createWriter(line, {
      ...settings(url),
      clock: "database",
      usesPreparedStatements: true,
    });
    const gateway: Gateway = { name, writer, line, open: [] };
    await reached(() => writer.open({ instance: name }, () => {}));
    gateways.push(gateway);
  };
  const calls = (): StoreCommand[] =>
    Array.from({ length: 1 + chanced.below(3) }, () =>
      reserveCommand(`c${count++}`, { at: Date.now(), claims: [{ ...BUDGET, take: TAKE }] }),
    );
  const ends = (of: Gateway): StoreCommand[] =>
    of.open.splice(0, 1 + chanced.below(2)).map((attempt) => {
      const costNano = chanced.one([0n, 0n, 300n, TAKE]);
      bill.set(attempt, costNano);
      return settleCommand(attempt, { at: Date.now(), costNano });
    });
  const batch = async (of: Gateway, commands: readonly StoreCommand[]): Promise<void> => {
    const verdicts = await tell(of, commands);
    done.push(
      `${of.name}: ${commands.map((c, i) => `${c.do} ${"attempt" in c ? c.attempt : ""}${verdicts[i]!.ok ? "" : " refused"}`).join(", ")}`,
    );
    commands.forEach((c, i) => {
      if (c.do === "reserve" && verdicts[i]!.ok && !of.open.includes(c.attempt))
        of.open.push(c.attempt);
    });
  };
  const looked = async (): Promise<void> => {
    const [row] = await by.ask(
      `SELECT coalesce(max(level + reserved), 0) AS taken, coalesce(min(reserved), 0) AS reserved FROM tollgate.meter WHERE id = '${ID}'`,
    );
    if (BigInt(row!["taken"]!) > MAX) wrong.push(`${row!["taken"]} of ${MAX} are taken`);
    if (BigInt(row!["reserved"]!) < 0n) wrong.push(`${row!["reserved"]} are held`);
  };

  const events: Readonly<Record<string, readonly [share: number, () => Promise<void>]>> = {
    begin: [30, () => batchOf(calls)],
    end: [30, () => batchOf(ends)],
    // Some of them at the same moment.
    together: [
      15,
      async () => {
        const told = gateways.map((of) => [of, [...calls(), ...ends(of)]] as const);
        await Promise.all(told.map(([of, commands]) => batch(of, commands)));
      },
    ],
    both: [8, () => batchOf((of) => [...ends(of), ...calls()])],
    progress: [
      5,
      () =>
        batchOf((of) =>
          of.open.slice(0, 1).map((attempt) => ({
            do: "progress",
            at: Date.now(),
            attempt,
            usage: { output: 3 },
            costNano: 100n,
          })),
        ),
    ],
    // A batch that was sent again, as after a response that was lost on its way to the host.
    again: [
      6,
      async () => {
        const of = chanced.one(gateways);
        const commands = [...ends(of), ...calls()];
        await tell(of, commands);
        await batch(of, commands);
      },
    ],
    die: [
      4,
      async () => {
        const of = chanced.one(gateways);
        gateways.splice(gateways.indexOf(of), 1);
        copied = false;
        await of.writer.close(false);
        await made.expireLease(of.name);
        await begin();
      },
    ],
    // It pauses, and its lease expires.
    stand: [
      5,
      async () => {
        const { name } = chanced.one(gateways);
        done.push(`${name} is taken for dead`);
        await made.expireLease(name);
      },
    ],
    reap: [5, async () => void (await reaped())],
    cut: [3, async () => chanced.one(gateways).line.disconnect()],
    close: [
      5,
      async () =>
        void (await by.ask(
          "SELECT tollgate.assign_sequence_1(999, true), tollgate.update_rollups_1(500)",
        )),
    ],
    copy: [
      2,
      async () => {
        await copy.save();
        copied = true;
      },
    ],
    "set back": [
      2,
      async () => {
        if (!copied) return;
        await copy.setBack();
        // Until all have sent their rows, one more call may be admitted, as docs/guides/fleet.md
        // states.
        for (const of of gateways) await tell(of, [{ do: "heartbeat", at: Date.now() }]);
      },
    ],
  };
  const batchOf = async (commands: (of: Gateway) => readonly StoreCommand[]): Promise<void> => {
    const of = chanced.one(gateways);
    const told = commands(of);
    if (told.length > 0) await batch(of, told);
  };

  try {
    await made.store.open({ instance: "judge" });
    for (let i = 0; i < 2 + chanced.below(3); i++) await begin();
    const all = Object.entries(events).flatMap(([name, [share]]) =>
      Array.from({ length: share }, () => name),
    );
    for (let step = 0; step < STEPS && wrong.length === 0; step++) {
      const name = chanced.one(all);
      done.push(name);
      await events[name]![1]();
      await looked();
    }
    for (const of of gateways) {
      of.line.calm(true);
      while (of.open.length > 0) await batch(of, ends(of));
    }
    await reaped();
    wrong.push(...(await judged(by.ask, bill)));
    for (const { path, message } of (await made.store.verify?.()) ?? [])
      wrong.push(`${path} ${message}`);
    for (const of of gateways) await of.writer.close(true);
  } catch (error) {
    wrong.push(`it ends with ${error instanceof Error ? error.message : String(error)}`);
    for (const of of gateways) await of.writer.close(false).catch(() => undefined);
  } finally {
    await made.dispose();
    await by[Symbol.asyncDispose]();
  }
  return { wrong, done };
}

/** All calls have ended: each once, at its price, and the budget is their sum. */
async function judged(
  ask: (text: string) => Promise<readonly Readonly<Record<string, string | null>>[]>,
  bill: ReadonlyMap<string, bigint>,
): Promise<string[]> {
  const wrong: string[] = [];
  const rows = await ask(
    `SELECT attempt, count(*) FILTER (WHERE kind = 0) AS begun, count(*) FILTER (WHERE kind = 1) AS ended, coalesce(sum(cost) FILTER (WHERE kind > 0), 0) AS cost
      FROM tollgate.entry GROUP BY attempt`,
  );
  const found = new Map(rows.map((row) => [row["attempt"]!, row]));
  let all = 0n;
  for (const [attempt, { begun, ended, cost }] of found) {
    all += BigInt(cost!);
    if (begun !== "1" || ended !== "1")
      wrong.push(`${attempt} begins ${begun} times, ends ${ended}`);
    const due = bill.get(attempt);
    if (due !== undefined && due !== BigInt(cost!))
      wrong.push(`${attempt} cost ${due}, and is written with ${cost}`);
  }
  for (const attempt of bill.keys()) if (!found.has(attempt)) wrong.push(`${attempt} is not there`);
  const [meter] = await ask(`SELECT level, reserved FROM tollgate.meter WHERE id = '${ID}'`);
  if (meter && (BigInt(meter["level"]!) !== all || meter["reserved"] !== "0"))
    wrong.push(`the budget has ${meter["level"]} used and ${meter["reserved"]} held, of ${all}`);
  const [open] = await ask("SELECT count(*) AS many FROM tollgate.open_call");
  if (open!["many"] !== "0") wrong.push(`${open!["many"]} calls are open`);
  return wrong;
}
