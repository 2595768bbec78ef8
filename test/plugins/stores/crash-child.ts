// Ledger traffic of a gateway until it is killed. Prints what was acknowledged afterwards.
import { createLedgerQueue } from "../../../src/runtime/ledger/ledger-queue.ts";
import { reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { onFile } from "./stores-under-test.ts";
import { turnEventLoop } from "../../kit/wait.ts";

const [file, run, durability] = process.argv.slice(2) as [string, string, "power" | "relaxed"];
const { store } = await onFile(file, { durability });
const { recovered } = await store.open({ instance: run });
// No caller here times out, whatever else this machine does.
const ledger = createLedgerQueue(store, { storeTimeoutMs: 30_000 });
const say = (line: string): void => void process.stdout.write(`${line}\n`);
say(`open ${recovered}`);

const CLIENTS = 16;

async function client(c: number): Promise<never> {
  for (let i = 0; ; i++) {
    const attempt = `${run}-${c}-${i}`;
    const cost = BigInt(1 + ((c * 7919 + i * 104_729) % 1_000));
    const verdict = await ledger.reserve(
      reserveCommand(attempt, {
        at: Date.now(),
        holdNano: 1_000n,
        claims: [
          { scope: "k", unit: "concurrent", max: CLIENTS, per: "open", take: 1n },
          { scope: "k", unit: "nano_usd", max: 10n ** 15n, per: "total", take: 1_000n },
        ],
      }),
    );
    // As many clients as leases: a denial means that a dead call still holds one.
    if (!verdict.ok) process.exit(3);
    say(`reserved ${attempt}`);
    if (i % 3 === 0) {
      ledger.progress({
        do: "progress",
        at: Date.now(),
        attempt,
        usage: { output: 5 },
        costNano: cost,
      });
      await turnEventLoop(1);
    }
    await ledger.settle(settleCommand(attempt, { at: Date.now(), costNano: cost }));
    say(`settled ${attempt} ${cost}`);
  }
}

await Promise.all(Array.from({ length: CLIENTS }, (_, c) => client(c)));
