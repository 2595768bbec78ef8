// Counts on the verbatim lane. Some backends leave reasoning out of the completion, or caches out of the prompt; what a
// client reads is what the ledger prices, so such a report is told anew, and whatever else stands in it stays.
import type { JsonObject, Usage } from "../../../plugin/index.ts";
import { needle, valueAt } from "../../sse/index.ts";
import { usageTo } from "../usage.ts";
import { object } from "../../json.ts";

const TOLD = ["prompt_tokens", "completion_tokens", "total_tokens"] as const;
const DETAILS = ["prompt_tokens_details", "completion_tokens_details"] as const;
const USAGE = [needle("usage")];

/** Upstream's own report as we count; undefined when both say the same, or when there is none where clients look. */
export function retold(answer: JsonObject, usage: Usage): JsonObject | undefined {
  const raw = object(answer["usage"]);
  const ours = usageTo(usage);
  if (!raw || TOLD.every((name) => raw[name] === ours[name])) return undefined;
  const told: Record<string, JsonObject[string]> = { ...raw, ...ours };
  for (const name of DETAILS) {
    const [theirs, better] = [object(raw[name]), object(ours[name])];
    if (theirs && better) told[name] = { ...theirs, ...better };
  }
  return told;
}

/** The same text with another report in it; `json`: where its object begins. */
export function recounted(b: Buffer, json: number, usage: JsonObject): Buffer {
  const at = valueAt(b, USAGE, json);
  return at
    ? Buffer.concat([b.subarray(0, at.from), Buffer.from(JSON.stringify(usage)), b.subarray(at.to)])
    : b;
}
