// Counts of requests are kept for two days. A gateway that has just begun fills them, up to a bound; one that leaks nothing else
// is flat only after that. So the soak begins with a gateway that has been up for two days already.
import type { RequestRecord } from "tollgate/plugin";
import { RequestStats } from "../../../src/runtime/requests/request-stats.ts";
import { createRequestRecord } from "../../kit/request-record.ts";
import type { Chance } from "../rig.ts";

const MINUTE_MS = 60_000;
const MINUTES = 48 * 60;
/** Of each in a minute: enough to fall into as many classes of time as usual traffic does. */
const EACH = 60;

/** What a gateway has in its state folder after two days of requests to these providers. */
export function twoDays(chance: Chance, names: readonly string[], end: number): Buffer {
  let now = end - MINUTES * MINUTE_MS;
  const stats = new RequestStats(() => now);
  for (; now < end; now += MINUTE_MS)
    stats.add(names.flatMap((name) => Array.from({ length: EACH }, () => asked(chance, name))));
  return stats.serialize();
}

function asked(chance: Chance, name: string): RequestRecord {
  const ms = Math.exp(chance.below(7_000) / 1_000);
  const call = {
    n: 1,
    provider: name,
    model: "model",
    state: "exact",
    usage: { input: 3, output: 5 },
    costNano: 700n,
    startMs: 0,
    ms: { headers: ms / 3, firstToken: ms / 2, total: ms },
  } as RequestRecord["calls"][number];
  return createRequestRecord({
    frontend: name,
    key: "k".repeat(10),
    ms,
    firstTokenMs: ms / 2,
    overheadMs: Math.exp(chance.below(3_000) / 1_000),
    calls: [call],
  });
}
