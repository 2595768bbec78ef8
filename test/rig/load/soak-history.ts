// Request counts are kept for two days. A new gateway fills them up to a limit, and is flat only
// after that. So the soak test starts with a gateway that has run for two days.
import type { RequestRecord } from "tollgate/plugin";
import { RequestStats } from "../../../src/runtime/requests/request-stats.ts";
import { createRequestRecord } from "../../kit/request-record.ts";
import type { Chance } from "../rig.ts";

const MINUTE_MS = 60_000;
const MINUTES = 48 * 60;
/** Requests per minute: enough for as many latency classes as usual traffic has. */
const EACH = 60;

/** Content of a gateway's state directory after two days of requests to these providers. */
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
