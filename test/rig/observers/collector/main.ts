// `.ci/run`: 10,000 requests through a real collector in protobuf, and 2,000 in JSON. Without Go,
// the sent data is checked directly. Ends with a line `N passed, N failed`.
import { formatResult } from "../../rig.ts";
import { traces } from "../traces.ts";
import { collector } from "./collector.ts";

const program = await collector();
console.log(program ?? "no Go here: without a collector between");
let failed = 0;
const rounds = [
  ["http/protobuf", 10_000],
  ["http/json", 2_000],
] as const;
for (const [protocol, requests] of rounds) {
  const of = { seed: 11, requests, protocol, collector: program ?? "", workers: 2 };
  const verdict = await traces({ ...of, say: (line) => console.log(line) });
  if (verdict.wrong.length > 0) failed++;
  for (const line of verdict.wrong.slice(0, 20)) console.log(`  wrong: ${line}`);
  console.log(formatResult(`traces ${protocol}`, verdict));
}
console.log(`${rounds.length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
