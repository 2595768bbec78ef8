// A gateway's worth of calls on a ledger whose old rows are pruned meanwhile, until it is killed. Says what was acknowledged, after it was.
import { createLedger } from "../../src/gateway/services/ledger-queue.ts";
import { reserve, settle } from "../../src/testing/store.ts";
import { quiet } from "../kit/waits.ts";
import { onFile } from "../plugins/stores/made.ts";

const [file, run, before, rate] = process.argv.slice(2) as [string, string, string, string];
const { store } = await onFile(file, { durability: "power" });
await store.open({ instance: run });
const ledger = createLedger(store, { patienceMs: 30_000 });
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const waits: number[] = [];
say("open");

async function call(n: number): Promise<void> {
  const attempt = `live-${run}-${String(n).padStart(8, "0")}`;
  const began = performance.now();
  await ledger.reserve(reserve(attempt, { key: "live", at: Date.now() }));
  waits.push(performance.now() - began);
  await quiet(5);
  await ledger.settle(settle(attempt, { at: Date.now(), costNano: 3n }));
  say(`settled ${attempt}`);
}

const traffic = (async () => {
  const began = Date.now();
  const under = new Set<Promise<void>>();
  for (let n = 0; ; n++) {
    const one = call(n).finally(() => under.delete(one));
    under.add(one);
    await quiet(Math.max(1, began + ((n + 1) * 1_000) / Number(rate) - Date.now()));
  }
})();

const pruned = await store.keeping!.prune!(Number(before), ({ rows }) => say(`gone ${rows}`));
waits.sort((a, b) => a - b);
const p99 = waits[Math.floor(waits.length * 0.99)] ?? 0;
say(`pruned ${pruned.rows} ${pruned.longestMs} ${p99} ${waits.at(-1) ?? 0}`);
await traffic;
