// One health state for all processes: whatever each detects, all report the same once the messages
// have arrived.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { StoreCommand, CommandResult } from "../../../src/plugin/store/store.ts";
import {
  followLedgerAvailability,
  LedgerAvailability,
  healthStateOf,
  type LedgerOutage,
} from "../../../src/runtime/services/ledger-availability.ts";
import { createLedgerQueue } from "../../../src/runtime/ledger/ledger-queue.ts";
import { reserveCommand } from "../../../src/testing/store.ts";
import { until } from "../../kit/wait.ts";

/**
 * A primary with a store that fails on demand, and workers that borrow it, connected like the
 * processes.
 */
function gateway(workers: number) {
  const at = { failing: false, notices: [] as boolean[] };
  const apply = async (batch: readonly StoreCommand[]): Promise<readonly CommandResult[]> => {
    await new Promise((turn) => setImmediate(turn));
    if (at.failing) throw new Error("the database is away");
    return batch.map(() => ({ ok: true }) as CommandResult);
  };
  const health = new LedgerAvailability();
  const sent: ((trouble: LedgerOutage | undefined) => void)[] = [];
  health.onChange((trouble) => {
    at.notices.push(trouble === undefined);
    for (const send of sent) setImmediate(() => send(trouble));
  });
  const ledger = createLedgerQueue(
    { apply },
    { onFailureChange: (trouble) => health.set(trouble && { since: 0, ...trouble }) },
  );
  const all = Array.from({ length: workers }, () => {
    const own = {
      ledgerAvailability: new LedgerAvailability(),
      ledgerQueue: undefined as never as typeof ledger,
    };
    own.ledgerQueue = createLedgerQueue(
      { apply },
      {
        onFailureChange: (trouble) =>
          trouble && setImmediate(() => ledger.suspectFailure(trouble.reason)),
      },
    );
    sent.push((trouble) => followLedgerAvailability(own, trouble));
    return own;
  });
  const processes = [{ ledgerAvailability: health, ledgerQueue: ledger }, ...all];
  const names = () =>
    processes.map(({ ledgerAvailability: { outage } }) =>
      healthStateOf({ draining: false, open: true, trouble: outage }),
    );
  return { at, processes, names, ledger };
}

const settled = async (names: () => readonly string[], name: string) =>
  until(
    () => names().every((each) => each === name),
    () => `every process says ${name}; they say ${names().join(", ")}`,
  );

it("a failure in any process is the state of every process, and so is its end", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.boolean()), {
        minLength: 1,
        maxLength: 5,
      }),
      async (outages) => {
        const { at, processes, names, ledger } = gateway(3);
        let n = 0;
        for (const [who, away] of outages) {
          at.failing = true;
          if (away) ledger.markUnreachable("connection refused");
          else await processes[who]!.ledgerQueue.reserve(reserveCommand(`a${n++}`)).catch(() => {});
          await settled(names, "ledger_unavailable");
          at.failing = false;
          await settled(names, "ready");
          // Ready means that a call is accepted, in each process.
          for (const { ledgerQueue: own } of processes) await own.flush();
        }
        expect(at.notices.at(-1)).toBe(true);
      },
    ),
    { numRuns: 4 },
  );
});

it.each([
  [{ draining: true, open: true, trouble: undefined }, "draining"],
  [
    { draining: true, open: true, trouble: { reason: "", since: 0, isUnreachable: true } },
    "draining",
  ],
  [{ draining: false, open: false, trouble: undefined }, "starting"],
  [
    { draining: false, open: true, trouble: { reason: "", since: 0, isUnreachable: false } },
    "ledger_unavailable",
  ],
  [{ draining: false, open: true, trouble: undefined }, "ready"],
] as const)("%o is %s", (of, name) => {
  expect(healthStateOf(of)).toBe(name);
});
