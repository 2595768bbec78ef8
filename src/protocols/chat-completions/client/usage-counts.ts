// Counts in passthrough mode. Some backends leave reasoning out of the completion, or caches out of the prompt; what a
// client reads is what the ledger prices, so such a report is told anew, and whatever else stands in it stays.
import type { JsonObject, Usage } from "../../../plugin/index.ts";
import { encodeKey, findValue } from "../../sse/index.ts";
import { usageTo } from "../usage.ts";
import { asObject } from "../../json-values.ts";

const TOTAL_FIELDS = ["prompt_tokens", "completion_tokens", "total_tokens"] as const;
const DETAILS = ["prompt_tokens_details", "completion_tokens_details"] as const;
const USAGE = [encodeKey("usage")];

/** Upstream's own report as we count; undefined when both say the same, or when there is none where clients look. */
export function correctedUsage(answer: JsonObject, usage: Usage): JsonObject | undefined {
  const raw = asObject(answer["usage"]);
  const ours = usageTo(usage);
  if (!raw || TOTAL_FIELDS.every((name) => raw[name] === ours[name])) return undefined;
  const usageReport: Record<string, JsonObject[string]> = { ...raw, ...ours };
  for (const name of DETAILS) {
    const [theirs, better] = [asObject(raw[name]), asObject(ours[name])];
    if (theirs && better) usageReport[name] = { ...theirs, ...better };
  }
  return usageReport;
}

/** The same text with another report in it; `json`: where its object begins. */
export function withUsage(b: Buffer, json: number, usage: JsonObject): Buffer {
  const at = findValue(b, USAGE, json);
  return at
    ? Buffer.concat([b.subarray(0, at.from), Buffer.from(JSON.stringify(usage)), b.subarray(at.to)])
    : b;
}
