// Calls of a gateway on a ledger, first alone for some milliseconds, then while its old rows are
// pruned, until it is killed. Prints what was acknowledged afterwards.
import { setTimeout as sleep } from "node:timers/promises";
import { createLedgerQueue } from "../../../src/runtime/ledger/ledger-queue.ts";
import { reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import { onFile } from "../../plugins/stores/stores-under-test.ts";

const [file, run, before, rate, aloneMs] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
];
const { store } = await onFile(file, { durability: "power" });
await store.open({ instance: run });
const ledger = createLedgerQueue(store, { storeTimeoutMs: 30_000 });
const say = (line: string): void => void process.stdout.write(`${line}\n`);
let waits: number[] = [];

async function call(n: number): Promise<void> {
  const attempt = `live-${run}-${String(n).padStart(8, "0")}`;
  const began = performance.now();
  await ledger.reserve(reserveCommand(attempt, { key: "live", at: Date.now() }));
  waits.push(performance.now() - began);
  await sleep(5);
  await ledger.settle(settleCommand(attempt, { at: Date.now(), costNano: 3n }));
  say(`settled ${attempt}`);
}

const traffic = (async () => {
  const began = Date.now();
  const under = new Set<Promise<void>>();
  for (let n = 0; ; n++) {
    const one = call(n).finally(() => under.delete(one));
    under.add(one);
    await sleep(Math.max(1, began + ((n + 1) * 1_000) / Number(rate) - Date.now()));
  }
})();

/** Durations since the last report, in milliseconds. */
function p99(): number {
  const all = waits.sort((a, b) => a - b);
  waits = [];
  return all[Math.floor(all.length * 0.99)] ?? 0;
}

await sleep(Number(aloneMs));
const alone = p99();
say("begins");
const pruned = await store.maintenance!.prune!(Number(before), ({ rows }) => say(`gone ${rows}`));
say(`pruned ${pruned.rows} ${pruned.longestStepMs} ${alone} ${p99()}`);
await traffic;
